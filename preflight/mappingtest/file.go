package mappingtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/problem/yamlfile"
)

// File is a test file as its author wrote it.
type File struct {
	// Mapping is the mapping under test, relative to the test file. Default: none, which tests the
	// preset default.
	Mapping string `yaml:"mapping"`
	// Keys is the primary key of the source table, as in the configuration: [pk:S, sk:S].
	Keys config.Keys `yaml:"keys"`
	// TTL is the table's time to live attribute.
	TTL string `yaml:"ttl"`
	// OnTTLExpiry is the table's setting of the same name.
	OnTTLExpiry string `yaml:"on_ttl_expiry"`
	// StripGlobal is the table's setting of the same name.
	StripGlobal bool `yaml:"strip_global_table_attributes"`
	// Tests are run in their order, each on its own.
	Tests []Case `yaml:"tests"`
}

// Case is one test: an item, or a change of one, and what must become of it.
type Case struct {
	// Name describes what is tested.
	Name string `yaml:"name"`
	// Was is the item before the change. Without it the item is new.
	Was Item `yaml:"was"`
	// Item is the item after the change. Without it the item was deleted.
	Item Item `yaml:"item"`
	// Expired: DynamoDB's TTL deleted the item, not a user.
	Expired bool `yaml:"expired"`
	// Cells are the expected lines, in any order. Without them the test fails, and the result has the
	// lines to be written here.
	Cells []string `yaml:"cells"`
}

// Item is an item in DynamoDB's typed JSON; nil when the file has none.
type Item []byte

// UnmarshalYAML takes an item as a block in DynamoDB's typed notation, or as JSON text.
func (i *Item) UnmarshalYAML(n *yaml.Node) (err error) {
	switch n.Kind {
	case yaml.ScalarNode:
		if *i = Item(n.Value); !json.Valid(*i) {
			return fmt.Errorf("the item is not JSON; for example {pk: {S: hats}, price: {N: \"12.50\"}}")
		}
		return nil
	case yaml.MappingNode:
		*i, err = json.Marshal(typed(n))
		return err
	}
	return fmt.Errorf("an item is a block such as {pk: {S: hats}}, or JSON text")
}

// typed returns a node as encoding/json writes it. Numbers stay as the author wrote them: they are
// texts in DynamoDB's notation, so 12.50 without quotes is "12.50".
func typed(n *yaml.Node) any {
	n = yamlfile.Resolve(n)
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = typed(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, e := range n.Content {
			list = append(list, typed(e))
		}
		return list
	}
	if n.ShortTag() == "!!bool" {
		return n.Value == "true"
	}
	return n.Value
}

// Read reads a test file. The error is about reading it; mistakes in it are a list of
// problems.
func Read(path string) (*File, []problem.Problem, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read tests: %w", err)
	}
	r := &yamlfile.Reader{
		Collector: problem.Collector{File: path}, KindCode: "bad_value", ValueCode: "bad_value", Merge: true,
		Example: "docs/mapping/README.md has an example",
	}
	f := &File{}
	if root := r.Load(text); root != nil {
		r.Decode(root, "", f)
		f.check(r)
	}
	if f.Mapping != "" && !filepath.IsAbs(f.Mapping) {
		f.Mapping = filepath.Join(filepath.Dir(path), f.Mapping)
	}
	problem.Sort(r.List)
	return f, r.List, nil
}

// check reports what makes the file no test.
func (f *File) check(r *yamlfile.Reader) {
	if _, ok := f.Keys.Schema(); !ok {
		r.Errorf(r.At("keys"), "keys", "keys: [pk:S, sk:S], with the types S, N and B",
			"the primary key of the source table is missing, or not possible")
	}
	if len(f.Tests) == 0 {
		r.Errorf(r.At("tests"), "missing", "tests: [{name: …, item: {…}, cells: [\"row | d:price = 12.5\"]}]",
			"the file has no tests")
	}
	for i := range f.Tests {
		c, at := &f.Tests[i], r.At(yamlfile.Item("tests", i))
		if c.Name == "" {
			r.Errorf(at, "missing", "name: what is tested", "the test has no name")
		}
		if c.Item == nil && c.Was == nil {
			r.Errorf(at, "missing", "item: {pk: {S: hats}, price: {N: \"12.50\"}}", "the test has no item")
		}
		if c.Expired && (c.Item != nil || c.Was == nil) {
			r.Errorf(at, "bad_value", "was: {…} without item:, and expired: true", "only an item that is gone has expired")
		}
	}
}
