// Package deploy holds the JSON Schemas of the configuration and of mapping files, for editors.
// `replicator config schema` prints them.
package deploy

import _ "embed"

// ConfigSchema is the schema of the configuration file; `make schema` writes it.
//
//go:embed tailrace.schema.json
var ConfigSchema []byte

// MappingSchema is the schema of mapping files. A test compares its keys and words with the keys
// and words that the reader of mappings accepts.
//
//go:embed mapping.schema.json
var MappingSchema []byte
