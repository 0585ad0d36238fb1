package pattern

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// tb is what a test and a rapid test have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// attribute makes a key attribute from "name" or "name:N".
func attribute(s string) change.KeyAttr {
	name, typ, typed := strings.Cut(strings.TrimSpace(s), ":")
	if !typed {
		typ = "S"
	}
	return change.KeyAttr{Name: name, Type: typ[0]}
}

// schemaOf makes a key of "pk sk:N".
func schemaOf(keys string) change.KeySchema {
	parts := strings.Fields(strings.ReplaceAll(keys, ",", " "))
	s := change.KeySchema{Partition: attribute(parts[0])}
	if len(parts) > 1 {
		k := attribute(parts[1])
		s.Sort = &k
	}
	return s
}

// indexOf makes an index of "name: a, b", or of "name: a+b, c, d" with several attributes in the
// partition key and in the sort key.
func indexOf(s string) Index {
	name, keys, _ := strings.Cut(s, ": ")
	parts := strings.Split(keys, ",")
	x := Index{Name: strings.TrimSpace(name)}
	for p := range strings.SplitSeq(parts[0], "+") {
		x.Partition = append(x.Partition, attribute(p))
	}
	for _, p := range parts[1:] {
		x.Sort = append(x.Sort, attribute(p))
	}
	return x
}

// mapped returns a table with a mapping that must compile.
func mapped(t tb, name, mapping string, schema change.KeySchema, indexes ...Index) Table {
	t.Helper()
	program, problems := compileMapping(name, mapping, schema)
	if program == nil {
		t.Fatalf("%s does not compile: %v", name, problems)
	}
	return Table{Name: name, Schema: schema, Indexes: indexes, Program: program}
}

func compileMapping(name, mapping string, schema change.KeySchema) (*transform.Program, []transform.Problem) {
	m, problems := transform.ParseMapping(name, []byte(mapping))
	for _, p := range problems {
		if p.Severity == "error" {
			return nil, problems
		}
	}
	return transform.Compile(transform.Table{Pipeline: "p", Source: name, Target: "t", Schema: schema, Mapping: m,
		Getenv: func(string) string { return "a secret of this test" }})
}

// model is a mapping of the fixtures or of the documents, with the keys that its comments name.
type model struct {
	name, text string
	table      Table
}

var (
	keysLine  = regexp.MustCompile(`(?m)^# keys: (.+?)(?:   .*)?$`)
	indexLine = regexp.MustCompile(`(?m)^#   index (.+)$`)
	block     = regexp.MustCompile("(?s)```yaml\n(# keys: .*?)```")
)

// worked are the keys of the worked examples of package transform.
var worked = map[string]string{
	"01_catalog": "pk sk", "02_video": "pk sk", "02b_video_safe": "pk sk", "02c_video_sk_time": "pk sk",
	"03_invoice": "pk sk", "04_counter": "pk", "05_versions": "pk sk", "06_erd": "PK SK", "07_ttl": "userId msgId",
	"07b_ttl_gc": "userId msgId", "08_document": "pk sk", "09_tags_lists": "pk sk:N", "10_regroup": "id",
	"11_google": "Username",
}

// models returns the mappings of the fixtures, the worked examples, and the blocks of the tutorial
// and of the reference that declare reads or index rows.
func models(t *testing.T) (all []model) {
	t.Helper()
	add := func(name, text, keys string) {
		var indexes []Index
		for _, m := range indexLine.FindAllStringSubmatch(text, -1) {
			indexes = append(indexes, indexOf(m[1]))
		}
		all = append(all, model{name, text, mapped(t, name, text, schemaOf(keys), indexes...)})
	}
	files := func(pattern string, keys func(name, text string) string) {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal("no mappings: ", pattern, err)
		}
		for _, path := range paths {
			text := read(t, path)
			name := strings.TrimSuffix(filepath.Base(path), ".yaml")
			add(name, text, keys(name, text))
		}
	}
	inText := func(_, text string) string { return keysLine.FindStringSubmatch(text)[1] }
	files("testdata/models/*.yaml", inText)
	files("../../transform/testdata/mappings/*.yaml", func(name, _ string) string { return worked[name] })
	for i, m := range block.FindAllStringSubmatch(read(t, "../../docs/mapping/tutorial.md"), -1) {
		add("tutorial_"+string(rune('a'+i)), m[1], inText("", m[1]))
	}
	n := 0
	for _, m := range block.FindAllStringSubmatch(read(t, "../../docs/mapping/reference.md"), -1) {
		if strings.Contains(m[1], "\nreads:") || strings.Contains(m[1], "  index:") {
			add("reference_"+string(rune('a'+n)), m[1], inText("", m[1]))
			n++
		}
	}
	return all
}

func read(t tb, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// request is a request in short: "Query index PK='a' and begins_with(SK,'b') backward filter".
type request struct {
	operation string
	index     string
	tests     []access.Test
	flags     []string
}

// parse parses a request in short. Its condition is written as in `of` of a mapping.
func parse(t tb, short string) request {
	t.Helper()
	words := strings.Fields(short)
	var flags []string
	for words[len(words)-1] == "backward" || words[len(words)-1] == "filter" {
		flags = append(flags, words[len(words)-1])
		words = words[:len(words)-1]
	}
	d, ok := parseOf(strings.Join(words, " "))
	if !ok || len(d.tests) == 0 {
		t.Fatalf("cannot parse %q", short)
	}
	return request{words[0], d.index, d.tests, flags}
}

// typed is a value as DynamoDB's JSON has it.
func typed(v change.Value) map[string]string { return map[string]string{v.Kind.String(): v.S} }

// body returns the request in one of the two styles.
func (r request) body(table string, legacy bool) []byte {
	out := map[string]any{"TableName": table}
	for _, f := range r.flags {
		switch f {
		case "backward":
			out["ScanIndexForward"] = false
		case "filter":
			out["FilterExpression"] = "attribute_exists(anything)"
		}
	}
	if r.index != "" {
		out["IndexName"] = r.index
	}
	key, conditions := map[string]any{}, map[string]any{}
	names, values := map[string]string{}, map[string]any{}
	var parts []string
	for i, t := range r.tests {
		n := string(rune('a' + i))
		names["#"+n] = t.Attr
		var list []any
		for k, v := range t.Values {
			list = append(list, typed(v))
			values[":"+n+string(rune('0'+k))] = typed(v)
		}
		key[t.Attr] = list[0]
		conditions[t.Attr] = map[string]any{"ComparisonOperator": legacyNames[t.Op], "AttributeValueList": list}
		switch t.Op {
		case access.BeginsWith:
			parts = append(parts, "begins_with(#"+n+", :"+n+"0)")
		case access.Between:
			parts = append(parts, "#"+n+" BETWEEN :"+n+"0 AND :"+n+"1")
		default:
			parts = append(parts, "#"+n+" "+t.Op+" :"+n+"0")
		}
	}
	switch {
	case r.operation == "GetItem":
		out["Key"] = key
	case legacy:
		out["KeyConditions"] = conditions
		if out["FilterExpression"] != nil {
			delete(out, "FilterExpression")
			out["QueryFilter"] = map[string]any{"anything": map[string]any{"ComparisonOperator": "NOT_NULL"}}
		}
	default:
		out["KeyConditionExpression"] = strings.Join(parts, " and ")
		out["ExpressionAttributeNames"], out["ExpressionAttributeValues"] = names, values
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return raw
}

var legacyNames = map[string]string{access.Equal: "EQ", access.Less: "LT", access.LessEqual: "LE", access.More: "GT",
	access.MoreEqual: "GE", access.Between: "BETWEEN", access.BeginsWith: "BEGINS_WITH"}

// one returns the pattern of a request in short, which must be the same in both styles.
func one(t tb, r *Reader, table, short string) Pattern {
	t.Helper()
	q := parse(t, short)
	var patterns []Pattern
	for _, legacy := range []bool{false, true} {
		got := r.Of(q.operation, q.body(table, legacy))
		if got.Skipped != "" || len(got.Uses) != 1 {
			t.Fatalf("%s: skipped %q, uses %v", short, got.Skipped, got.Uses)
		}
		patterns = append(patterns, got.Uses[0].Pattern)
	}
	if patterns[0].ID() != patterns[1].ID() {
		t.Fatalf("%s: the styles differ:\n%s\n%s", short, patterns[0].ID(), patterns[1].ID())
	}
	return patterns[0]
}
