package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/deploy"
	"github.com/tailrace-cdc/replicator/transform"
)

// schemaBlock is a block of the schema of mapping files, as far as the test needs it.
type schemaBlock struct {
	Properties map[string]struct {
		Enum  []any
		AnyOf []schemaBlock `json:"anyOf"`
	}
	AnyOf []schemaBlock          `json:"anyOf"`
	Defs  map[string]schemaBlock `json:"$defs"`
}

// TestMappingSchemaIsWhatTheReaderKnows: the schema is written by hand, because the reader of
// mappings reads keys, not structs. At each place a key and a word that do not exist are written:
// the hints list those that do.
func TestMappingSchemaIsWhatTheReaderKnows(t *testing.T) {
	var top schemaBlock
	if err := json.Unmarshal(deploy.MappingSchema, &top); err != nil {
		t.Fatal(err)
	}
	blocks := map[string]schemaBlock{ // by a mapping in which %s is a key of the block
		"%s":                                  top,
		"families: {d: {%s}}":                 top.Defs["family"],
		"rules: [{%s}]":                       top.Defs["rule"],
		"rules: [{match: {pk: {%s}}}]":        top.Defs["condition"].AnyOf[1],
		"rules: [{cells: [{%s}]}]":            top.Defs["cell"],
		"rules: [{cells: [{doc: {%s}}]}]":     top.Defs["cell"].Properties["doc"].AnyOf[1],
		"rules: [{index: [{%s}]}]":            top.Defs["index"],
		"rules: [{index: [{cells: [{%s}]}]}]": top.Defs["cell"],
		"reads: [{%s}]":                       top.Defs["read"],
		"views: [{%s}]":                       top.Defs["view"],
	}
	for mapping, block := range blocks {
		keys := slices.Sorted(maps.Keys(block.Properties))
		known := listedIn(hintAbout(t, fmt.Sprintf(mapping, "zzz: 1"), "zzz"), "known here: ")
		slices.Sort(known)
		if d := cmp.Diff(known, keys); d != "" {
			t.Errorf("keys of %s (-reader +schema):\n%s", mapping, d)
		}
		for _, key := range keys {
			words := listedIn(hintAbout(t, fmt.Sprintf(mapping, key+": zzz"), key), "one of: ")
			var enum []string
			for _, word := range block.Properties[key].Enum {
				if text := fmt.Sprint(word); !slices.Contains(enum, text) {
					enum = append(enum, text)
				}
			}
			if d := cmp.Diff(words, enum); d != "" {
				t.Errorf("words of %s in %s (-reader +schema):\n%s", key, mapping, d)
			}
		}
	}
}

// hintAbout returns the hint of the problem of a mapping at a key that is called so.
func hintAbout(t *testing.T, mapping, key string) string {
	t.Helper()
	_, problems := transform.ParseMapping("mapping.yaml", []byte(mapping))
	for _, p := range problems {
		if p.Path == key || strings.HasSuffix(p.Path, "."+key) {
			return p.Hint
		}
	}
	return ""
}

// listedIn returns the words that a hint lists behind a text.
func listedIn(hint, behind string) []string {
	_, list, ok := strings.Cut(hint, behind)
	if !ok {
		return nil
	}
	return strings.Split(list, ", ")
}

// TestMappingsFitTheirSchema: an editor marks no mapping that runs, and does mark mistakes.
func TestMappingsFitTheirSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(deploy.MappingSchema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mapping.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("mapping.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	all := runningMappings(t)
	if len(all) < 40 {
		t.Errorf("only %d mappings", len(all))
	}
	for name, text := range all {
		if err := schema.Validate(decoded(t, text)); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	for _, wrong := range []string{
		"rulez: []", "preset: defaults", "rules: [{row: x, cells: [{attr: a, attrs: all, to: \"d:x\"}]}]",
		"rules: [{row: x, cells: [{attr: a}]}]", "families: {d: {max_versions: none}}", "rules: [{match: {pk: {typ: S}}}]",
		"rules: [{index: [{name: x}]}]",
	} {
		if schema.Validate(decoded(t, wrong)) == nil {
			t.Errorf("%s fits the schema", wrong)
		}
	}
}

// runningMappings returns the mappings of the worked examples and of the documentation, by name.
func runningMappings(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := filepath.Glob(mappings + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../docs/mapping/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, pages...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, ".md") {
			all[file] = string(text)
			continue
		}
		for i, block := range documented.FindAllStringSubmatch(string(text), -1) {
			all[fmt.Sprintf("%s %d", file, i)] = block[1]
		}
	}
	return all
}

// documented finds the mappings of the documentation that run: their first line names the keys of
// the table.
var documented = regexp.MustCompile("(?s)```yaml\n(# keys:.*?)```\n```json")

// decoded returns a YAML text as encoding/json would decode the same JSON.
func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	data, err := json.Marshal(namedKeys(v))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	v, err = jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// namedKeys returns a value with texts as keys: `null:` is a key of the language, and YAML's null.
func namedKeys(v any) any {
	switch v := v.(type) {
	case map[any]any:
		named := map[string]any{}
		for key, value := range v {
			if key == nil {
				key = "null"
			}
			named[fmt.Sprint(key)] = namedKeys(value)
		}
		return named
	case map[string]any:
		for key, value := range v {
			v[key] = namedKeys(value)
		}
	case []any:
		for i := range v {
			v[i] = namedKeys(v[i])
		}
	}
	return v
}
