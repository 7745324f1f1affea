// What Go's encoding/json reads in a message, with the structs that a server or a client in Go would have: names are matched
// without regard to case. A text a line in, an object a line out: place to the JSON there, or null. See tools/differential.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
)

type message struct {
	ID     json.RawMessage `json:"id"`
	Method json.RawMessage `json:"method"`
	Params *params         `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Name   json.RawMessage `json:"name"` // of an entry of a list
}

type params struct {
	Name          json.RawMessage `json:"name"`
	URI           json.RawMessage `json:"uri"`
	Ref           *reference      `json:"ref"`
	RequestID     json.RawMessage `json:"requestId"`
	ProgressToken json.RawMessage `json:"progressToken"`
	Meta          *meta           `json:"_meta"`
}

type reference struct {
	Type json.RawMessage `json:"type"`
	Name json.RawMessage `json:"name"`
	URI  json.RawMessage `json:"uri"`
}

type meta struct {
	ProgressToken json.RawMessage `json:"progressToken"`
	Version       json.RawMessage `json:"io.modelcontextprotocol/protocolVersion"`
	Client        json.RawMessage `json:"io.modelcontextprotocol/clientInfo"`
	Capabilities  json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
}

// raw is the text of a value as it was spelt.
func raw(value json.RawMessage) *string {
	if value == nil {
		return nil
	}
	text := string(value)
	return &text
}

// text is a string as Go decodes it, spelt again.
func text(value json.RawMessage) *string {
	var decoded string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &decoded) != nil {
		return raw(value)
	}
	spelt, _ := json.Marshal(decoded)
	again := string(spelt)
	return &again
}

func read(line []byte) map[string]*string {
	var got message
	err := json.Unmarshal(line, &got)
	var mismatch *json.UnmarshalTypeError
	// What has another type than its struct is left out; everything else was read.
	if err != nil && !errors.As(err, &mismatch) {
		why := err.Error()
		return map[string]*string{"refused": &why}
	}
	if got.Params == nil {
		got.Params = &params{}
	}
	if got.Params.Ref == nil {
		got.Params.Ref = &reference{}
	}
	if got.Params.Meta == nil {
		got.Params.Meta = &meta{}
	}
	asked, about, said := got.Params, got.Params.Ref, got.Params.Meta
	return map[string]*string{
		"id": raw(got.ID), "method": text(got.Method), "result": raw(got.Result), "error": raw(got.Error), "entry": text(got.Name),
		"name": text(asked.Name), "uri": text(asked.URI), "requestId": raw(asked.RequestID), "progressToken": raw(asked.ProgressToken),
		"ref.type": text(about.Type), "ref.name": text(about.Name), "ref.uri": text(about.URI),
		"_meta.progressToken": raw(said.ProgressToken), "_meta.version": raw(said.Version), "_meta.client": raw(said.Client),
		"_meta.capabilities": raw(said.Capabilities),
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	printed := json.NewEncoder(out)
	for lines.Scan() {
		if err := printed.Encode(read(lines.Bytes())); err != nil {
			panic(err)
		}
	}
}
