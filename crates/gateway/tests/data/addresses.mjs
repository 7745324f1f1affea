// Spellings of addresses that a filter must not let through, as `new URL()` reads them (WHATWG URL, Node).
//
//     node crates/gateway/tests/data/addresses.mjs > crates/gateway/tests/data/addresses.json
//
// `hidden`: spellings of what `exclude` names. `outside`: spellings that are not, or do not stay, within what `include` names.
// `fine`: addresses that both let through. `reads` is what the parser makes of a spelling, null if it refuses it.
const hidden = [
  // The addresses themselves.
  'note://secret', 'file:///etc/x', 'https://intra.example/admin/x',
  // Tab, line feed and carriage return, which the parser drops.
  'note://se\tcret', 'note://se\ncret', 'note://se\rcret', 'no\tte://secret', 'note:\t//secret', 'note:/\r/secret',
  'file:///e\ttc/x', 'file:///et\nc/x', 'fi\rle:///etc/x', 'https://intra.exa\tmple/admin/x', 'https://intra.example/ad\nmin/x',
  'ht\ttps://intra.example/admin/x',
  // C0 characters and spaces at the ends, which it drops too.
  ' note://secret', 'note://secret ', '\u0000note://secret', '\u001fnote://secret', 'note://secret\u0000', 'note://secret\u001f\u0020',
  '\tfile:///etc/x', 'file:///etc/x\n', '\u000bhttps://intra.example/admin/x', 'https://intra.example/admin/x \u0001',
  // A user, a password, or the place for them.
  'note://@secret', 'note://:@secret', 'note://user@secret', 'note://user:word@secret', 'https://@intra.example/admin/x',
  'https://:@intra.example/admin/x', 'https://user@intra.example/admin/x', 'https://user:word@intra.example/admin/x',
  // A port that is empty, or the one of the scheme.
  'note://secret:', 'note://@secret:', 'https://intra.example:/admin/x', 'https://intra.example:443/admin/x', 'https://intra.example:0443/admin/x',
  'https://user@intra.example:443/admin/x',
  // Slashes: too few, too many, the other ones.
  'file:etc/x', 'file:/etc/x', 'file:\\etc\\x', 'file:///\\etc/x', 'file:\\\\\\etc/x', 'https:intra.example/admin/x', 'https:/intra.example/admin/x',
  'https:///intra.example/admin/x', 'https:\\\\intra.example\\admin\\x', 'https:/\\intra.example/admin/x', 'https:@intra.example/admin/x',
  // The host, which is decoded, mapped and without case.
  'https://INTRA.Example/admin/x', 'https://intra%2eexample/admin/x', 'https://%69ntra.example/admin/x', 'https://intra\u3002example/admin/x',
  'https://intra\uff0eexample/admin/x', 'https://intra\uff61example/admin/x', 'https://\uff49ntra.example/admin/x', 'https://\u24d8ntra.example/admin/x',
  'https://\u2139ntra.example/admin/x', 'https://\u{1d422}ntra.example/admin/x', 'https://in\u00adtra.example/admin/x', 'https://in\u200btra.example/admin/x',
  'https://intra.ex\u00aample/admin/x', 'https://intra.example./admin/x', 'HTTPS://intra.example/admin/x', 'FILE:///etc/x', 'NOTE://secret',
  'file://localhost/etc/x', 'file://LOCALHOST/etc/x', 'file://%6cocalhost/etc/x', 'file://loc\u00adalhost/etc/x', 'file://\uff4cocalhost/etc/x',
  // Segments that lead elsewhere.
  'file:///pub/../etc/x', 'file:///pub/%2e%2e/etc/x', 'file:///pub/.%2E/etc/x', 'file:///./etc/x', 'file:///%2e/etc/x', 'file:/../etc/x',
  'https://intra.example/./admin/x', 'https://intra.example/pub/..\\admin/x', 'https://intra.example/%2E/admin/x',
  // What is behind the path.
  'note://secret#a', 'note://secret?a', 'file:///etc/x#a', 'note://secret/',
];
const outside = [
  'file:///etc/x', 'file:etc/x', 'https://intra.example/admin/x', 'https://intra.example/', 'note://secret',
  'file:///pub/../etc/x', 'file:///pub/./../etc/x', 'file:///pub/a/../../etc/x', 'file:///pub/%2e%2e/etc/x', 'file:///pub/%2E%2E/etc/x', 'file:///pub/.%2e/etc/x',
  'file:///pub/%2e./etc/x', 'file:///pub/..\\etc/x', 'file:///pub/\\..\\etc/x', 'file:///pub/..', 'file:///pub/../..', 'file:///pub/..?a', 'file:///pub/..#a',
  'file:///pub/.\t./etc/x', 'file:///pub/.\n./etc/x', 'file:///pub/.\r./etc/x', 'file:///pub/\t../etc/x', 'file:///pub/..\t/etc/x', 'file:///pub/..\n/etc/x',
  'file:///pub/%2e%2\te/etc/x', 'file:///pub/%\t2e%2e/etc/x', 'file:///pub/%2\ne%2e/etc/x', 'file:///pub/.%\r2e/etc/x', 'file:///pub/..\t', 'file:///pub/.. ',
  'file:///pub/..\u0000', 'file:///pub/..\u001f', 'file:///pub/..\u000b', 'file:///pub/.\t.\\etc/x', 'file:///pub/.\t\n\r./etc/x',
  'https://intra.example/pub/../admin/x', 'https://intra.example/pub/.\t./admin/x', 'https://intra.example/pub/.\n./admin/x', 'https://intra.example/pub/%2e%2\te/admin/x',
  'https://intra.example/pub/..\\admin/x', 'https://intra.example/pub/%2e%2e\\admin/x', 'https://intra.example/pub/.\r.\\admin/x', 'https://intra.example/pub/..\t',
  'https://intra.example/pub/.. ', 'https://intra.example/pub/..\u0008',
  // A host, a scheme and a user that begin as what is shown does.
  'memo://public@secret', 'memo://public:@secret', 'memo://public:1@secret', 'memo://public%40@secret', 'memo://public\t@secret', 'memo://public@secret:',
  'https://docs.example@intra.example/admin/x', 'https://docs.example:443@intra.example/admin/x',
  'https://docs.example:@intra.example/admin/x', 'https://docs.example%2f@intra.example/admin/x', 'https://docs.example\t@intra.example/admin/x',
  'https://docs.example:\t443@intra.example/admin/x', 'https://docs.example\n.evil/', 'https://docs.example@intra\u3002example/admin/x',
  // What a server that opens a file passes over.
  'file:///etc/x?.md', 'file:///etc/x#.md', 'file:/etc/x?.md', 'file:///etc/x?a#.md', 'wiki://secret#.md',
];
const fine = [
  'file:///pub/x', 'file:///pub/x?a=/../', 'file:///pub/..x/.y', 'file:///pub/a%20b', 'file:///pub/größe', 'https://intra.example/pub/x', 'https://intra.example/pub/?a=b#c',
  'https://docs.example/', 'memo://public', 'memo://public/a', 'memo://public-2/a', 'https://alice@wiki.example/a',
];
const reads = (uri) => {
  try {
    return new URL(uri).href;
  } catch {
    return null;
  }
};
const table = (uris) => [...new Set(uris)].map((uri) => `    ${JSON.stringify({ uri, reads: reads(uri) })}`).join(',\n');
const text = Object.entries({ hidden, outside, fine }).map(([name, uris]) => `  ${JSON.stringify(name)}: [\n${table(uris)}\n  ]`);
console.log(`{\n${text.join(',\n')}\n}`);
