#!/usr/bin/env node
// Finds the binary in the package for this platform, and becomes it where node can do that (from 22.15 on); elsewhere node
// stays as its parent, passes signals on and ends as it ends.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');

const platform = `${process.platform}-${process.arch}`;
const name = `linetender-${platform}`;
let binary;
try {
  binary = require.resolve(`${name}/bin/linetender${process.platform === 'win32' ? '.exe' : ''}`);
} catch {
  // Without dependencies until the registry has them from us: npm would take the package of whoever registers their names.
  const { optionalDependencies, platforms } = require('./package.json');
  const known = Object.keys(optionalDependencies ?? platforms);
  console.error(
    known.includes(name)
      ? `linetender: the package ${name} is not installed: ${
          platforms
            ? 'install the file that tools/packages built of it together with this one.'
            : 'npm leaves it out with --omit=optional or --no-optional. Install again without that.'
        }`
      : `linetender: there is no binary for ${platform} yet (there is: ${known.map((known) => known.slice('linetender-'.length)).join(', ')}). With a Rust compiler, in linetender's repository: cargo install --path crates/cli --locked`,
  );
  process.exit(1);
}
const words = process.argv.slice(2);

if (process.execve) {
  process.emitWarning = () => {}; // that execve is experimental is nothing to users
  try {
    process.execve(binary, [binary, ...words], process.env);
  } catch {
    // Not on this system: as its parent, then.
  }
}

const child = spawn(binary, words, { stdio: 'inherit' });
const passed = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];
for (const signal of passed) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`linetender: ${binary} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  // The same end: a shell says "killed by".
  for (const signal of passed) process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  setTimeout(() => process.exit(128 + (constants.signals[signal] ?? 0)), 1000);
});
