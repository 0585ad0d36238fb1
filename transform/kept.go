package transform

import (
	"encoding/json"
	"fmt"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Kept is the part of a table's configuration that its cells depend on. It is stored beside the
// program's hash, so that the program that wrote the rows can be compiled again after the mapping
// has changed. It holds no secret: variables of the environment are named, and secrets in the file
// are replaced by "${REMOVED}".
type Kept struct {
	Mapping     string `json:"mapping"` // the file, normalised; empty: the preset default
	OnTTLExpiry string `json:"on_ttl_expiry,omitempty"`
	StripGlobal bool   `json:"strip_global,omitempty"`
}

// Keep returns the JSON of the program's Kept, to be stored beside its hash.
func (p *Program) Keep() ([]byte, error) {
	k := Kept{OnTTLExpiry: p.prog.Table.OnTTLExpiry, StripGlobal: p.prog.Table.StripGlobal}
	if p.prog.Table.Mapping != nil {
		k.Mapping = p.prog.Table.Mapping.Normal
	}
	b, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("encode mapping to store: %w", err)
	}
	return b, nil
}

// Apply sets in t the mapping and the options that k holds. Compiled with its secrets and together
// with the other tables of its target, t then gives a program with the stored hash.
func (k *Kept) Apply(t *Table) error {
	t.Mapping, t.OnTTLExpiry, t.StripGlobal = nil, k.OnTTLExpiry, k.StripGlobal
	if k.Mapping == "" {
		return nil
	}
	m, problems := lang.Parse("stored mapping", []byte(k.Mapping))
	for _, p := range problems {
		if p.Severity == problem.SeverityError {
			return fmt.Errorf("read stored mapping: %s", p)
		}
	}
	t.Mapping = m
	return nil
}
