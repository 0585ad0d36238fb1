package config

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"

	"github.com/tailrace-cdc/replicator/problem/yamlfile"
)

var update = flag.Bool("update", false, "write the files that the tests compare with")

const schemaFile = "../deploy/tailrace.schema.json"

// TestSchemaForEditorsIsCurrent compares the shipped JSON Schema with the one of the types; `make
// schema` writes it anew. The schema is made here and not by the program: its words are the
// comments of the source, and no daemon needs them.
func TestSchemaForEditorsIsCurrent(t *testing.T) {
	want := schemaOf(t)
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("run `make schema`:\n%s", d)
	}
}

func schemaOf(t *testing.T) []byte {
	t.Helper()
	var r jsonschema.Reflector
	text := func(pattern, description string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Pattern: pattern, Description: description}
	}
	r = jsonschema.Reflector{
		FieldNameTag: "yaml", Anonymous: true, ExpandedStruct: true, DoNotReference: true, RequiredFromJSONSchemaTags: true,
		Mapper: func(v reflect.Type) *jsonschema.Schema {
			switch v {
			case reflect.TypeFor[Duration]():
				return text(`^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^\$\{`, "")
			case reflect.TypeFor[Size]():
				return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{text(`^[0-9]+(\.[0-9]+)? ?([KMGTP]i?B|B)?$|^\$\{`, ""),
					{Type: "integer"}}}
			case reflect.TypeFor[Start]():
				return text(`^trim_horizon$|^latest$|^[0-9]{4}-|^\$\{|^$`, "")
			case reflect.TypeFor[Units]():
				return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{text(`^[0-9]+(\.[0-9]+)?%?$|^\$\{`, ""), {Type: "number"}}}
			case reflect.TypeFor[Rate]():
				return text(`^[0-9]+(\.[0-9]+)?/s$|^\$\{`, "")
			case reflect.TypeFor[Backfill]():
				word := &jsonschema.Schema{Type: "string", Enum: []any{backfillScan, backfillExport, backfillNone}}
				return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{word, block(&r, v)}}
			case reflect.TypeFor[Mapping]():
				return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "object"}}}
			}
			return nil
		},
	}
	if err := r.AddGoComments("github.com/tailrace-cdc/replicator/config", "./"); err != nil {
		t.Fatal(err)
	}
	s := r.Reflect(&Config{})
	s.Title = "Tailrace replicator"
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// block returns the schema of a struct whose type the reflector maps to something else: that of its
// keys.
func block(r *jsonschema.Reflector, v reflect.Type) *jsonschema.Schema {
	plain, mapper := *r, r.Mapper
	plain.Mapper = func(inner reflect.Type) *jsonschema.Schema {
		if inner == v {
			return nil
		}
		return mapper(inner)
	}
	s := plain.ReflectFromType(v)
	s.Version = ""
	return s
}

// TestExampleHasEveryKey keeps the shipped example complete: it is where most people look first.
func TestExampleHasEveryKey(t *testing.T) {
	src, err := os.ReadFile("../tailrace.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cfg, problems := Parse(src, "../tailrace.example.yaml")
	for _, p := range problems {
		t.Error(p)
	}
	for block, keys := range map[string][]string{
		"": keysOf[Config](), "source": keysOf[Source](), "bigtable": keysOf[Bigtable](), "queue": keysOf[Queue](),
		"queue.tls": keysOf[TLS](), "memory": keysOf[Memory](), "admin": keysOf[Admin](), "tracing": keysOf[Tracing](),
		"shadow":    keysOf[Shadow](),
		"archive":   keysOf[Archive](),
		"tables[0]": keysOf[Table](), "tables[0].backfill": keysOf[Backfill](),
	} {
		for _, key := range keys {
			if key != "testing" && !strings.Contains(string(src), key+":") {
				t.Errorf("%s.%s is not mentioned", block, key)
			}
		}
	}
	if len(cfg.Tables) < 2 {
		t.Errorf("%d tables", len(cfg.Tables))
	}
}

func keysOf[T any]() []string { return yamlfile.Keys(reflect.TypeFor[T]()) }
