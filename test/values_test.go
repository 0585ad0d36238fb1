package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const chartDir = "../deploy/helm"

// chartValue is a key of values.yaml.
type chartValue struct {
	path        []string
	standard    string // its default, as YAML in one line
	description string
	group       bool // it holds keys that are described one by one
}

// name is how `helm --set` calls it.
func (v chartValue) name() string { return strings.Join(v.path, ".") }

// chartValues returns all keys of values.yaml in order. A mapping in block style is described key
// by key, one in flow style ({…}) as a whole; config as a whole too, because the program describes
// it.
func chartValues(t *testing.T) []chartValue {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Load([]byte(read(t, chartDir+"/values.yaml")), &doc); err != nil {
		t.Fatal(err)
	}
	return chartValuesOf(t, nil, doc.Content[0])
}

func chartValuesOf(t *testing.T, path []string, m *yaml.Node) (all []chartValue) {
	t.Helper()
	for i := 0; i < len(m.Content); i += 2 {
		key, node := m.Content[i], m.Content[i+1]
		v := chartValue{path: append(slices.Clone(path), key.Value), description: sentence(key.HeadComment)}
		v.group = node.Kind == yaml.MappingNode && node.Style&yaml.FlowStyle == 0 && v.name() != "config"
		if v.description == "" {
			t.Errorf("values.yaml: no comment above %s", v.name())
		}
		if !v.group {
			v.standard = inOneLine(t, node)
		}
		if all = append(all, v); v.group {
			all = append(all, chartValuesOf(t, v.path, node)...)
		}
	}
	return all
}

// sentence returns the text of the last block of a comment; the first block of the file is about
// the chart.
func sentence(comment string) string {
	blocks := strings.Split(comment, "\n\n")
	lines := strings.Split(blocks[len(blocks)-1], "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(l, "#"))
	}
	return strings.Join(lines, " ")
}

// inOneLine writes a value in flow style, without comments.
func inOneLine(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var v any
	if err := node.Decode(&v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readSchema returns a JSON file.
func readSchema(t *testing.T, path string) map[string]any {
	t.Helper()
	s := map[string]any{}
	if err := json.Unmarshal([]byte(read(t, path)), &s); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s
}

// property returns what the schema says about a key; nil if nothing.
func property(schema map[string]any, path []string) map[string]any {
	for _, key := range path {
		properties, _ := schema["properties"].(map[string]any)
		if schema, _ = properties[key].(map[string]any); schema == nil {
			return nil
		}
	}
	return schema
}

// TestChartValuesAreDocumented: values.yaml, its schema and README.md have the same keys, and say
// the same about them. The types are written in the schema by hand; its descriptions are the
// comments of values.yaml, and what it says of config is the program's own schema.
func TestChartValuesAreDocumented(t *testing.T) {
	values := chartValues(t)
	place := chartDir + "/values.schema.json"
	schema := readSchema(t, place)
	known := map[string]chartValue{}
	for _, v := range values {
		known[v.name()] = v
		p := property(schema, v.path)
		if p == nil {
			t.Errorf("values.schema.json does not know %s", v.name())
			continue
		}
		if v.name() == "config" {
			configSchema(t, p)
		}
		if v.name() == "metrics.prometheusRule.alerts" {
			p["propertyNames"] = map[string]any{"enum": alertNames(t)}
		}
		p["description"] = v.description
		if v.group && p["additionalProperties"] != false {
			t.Errorf("values.schema.json takes unknown keys of %s", v.name())
		}
	}
	if schema["additionalProperties"] != false {
		t.Error("values.schema.json takes unknown keys")
	}
	unknown(t, known, schema, nil)
	same(t, place, encode(t, schema))
	same(t, chartDir+"/README.md", readme(t, values))
}

// configSchema replaces what the schema says of config by what the program's says, without the keys
// that it requires: the chart sets some, and says itself what is missing, also that there are no
// tables.
func configSchema(t *testing.T, p map[string]any) {
	t.Helper()
	clear(p)
	for k, v := range readSchema(t, "../deploy/tailrace.schema.json") {
		if !slices.Contains([]string{"$schema", "$id", "title", "required"}, k) {
			p[k] = v
		}
	}
	delete(property(p, []string{"tables"}), "minItems")
	if p["additionalProperties"] != false {
		t.Error("the program's schema takes unknown keys")
	}
}

// alertNames returns the names of the alerts: a change of one that does not exist is a mistake.
func alertNames(t *testing.T) (names []string) {
	t.Helper()
	for _, r := range alertRules(t) {
		names = append(names, r.name)
	}
	return names
}

// unknown reports keys of the schema that values.yaml does not have.
func unknown(t *testing.T, known map[string]chartValue, schema map[string]any, path []string) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	for key := range properties {
		p := append(slices.Clone(path), key)
		v, ok := known[strings.Join(p, ".")]
		if !ok {
			t.Errorf("values.yaml has no %s, which the schema knows", strings.Join(p, "."))
		} else if v.group {
			unknown(t, known, properties[key].(map[string]any), p)
		}
	}
}

func encode(t *testing.T, schema map[string]any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(schema); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// same compares a file with what it should hold, or writes it with -update.
func same(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s does not follow from its sources (%v): run this test with -update, and read the difference", path, err)
	}
}

// tableHead begins the part of README.md that is written by -update.
const tableHead = "| value | default | |\n|---|---|---|\n"

// readme returns README.md with the table of these values at its end.
func readme(t *testing.T, values []chartValue) []byte {
	t.Helper()
	prose, _, ok := strings.Cut(read(t, chartDir+"/README.md"), tableHead)
	if !ok {
		t.Fatalf("no table in README.md")
	}
	var b strings.Builder
	b.WriteString(prose + tableHead)
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;")
	for _, v := range values {
		standard := ""
		if !v.group && v.name() != "config" {
			standard = "`" + v.standard + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.name(), escape.Replace(standard), escape.Replace(v.description))
	}
	return []byte(b.String())
}

// TestChartHasAlertsAndDashboard: helm reads no file outside of the chart, so the chart has copies.
func TestChartHasAlertsAndDashboard(t *testing.T) {
	same(t, chartDir+"/files/alerts.yaml", []byte(read(t, "../deploy/alerts.yaml")))
	same(t, chartDir+"/files/tailrace.json", []byte(read(t, "../deploy/grafana/dashboards/tailrace.json")))
}
