package transform

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

// key makes a key attribute from "name:T".
func key(s string) change.KeyAttr {
	name, typ, _ := strings.Cut(s, ":")
	return change.KeyAttr{Name: name, Type: typ[0]}
}

func schema(partition string, sort ...string) change.KeySchema {
	s := change.KeySchema{Partition: key(partition)}
	if len(sort) > 0 {
		k := key(sort[0])
		s.Sort = &k
	}
	return s
}

// exampleTables are the source tables of the worked examples.
var exampleTables = map[string]Table{
	"01_catalog.yaml":        {Source: "ProductCatalog", Schema: schema("pk:S", "sk:S")},
	"02_video.yaml":          {Source: "Videos", Schema: schema("pk:S", "sk:S")},
	"02b_video_safe.yaml":    {Source: "Videos", Schema: schema("pk:S", "sk:S")},
	"02c_video_sk_time.yaml": {Source: "Videos", Schema: schema("pk:S", "sk:S")},
	"03_invoice.yaml":        {Source: "Invoices", Schema: schema("pk:S", "sk:S")},
	"04_counter.yaml":        {Source: "Votes", Schema: schema("pk:S")},
	"05_versions.yaml":       {Source: "Docs", Schema: schema("pk:S", "sk:S")},
	"06_erd.yaml":            {Source: "Portal", Schema: schema("PK:S", "SK:S")},
	"07_ttl.yaml":            {Source: "Messages", Schema: schema("userId:S", "msgId:S"), TTLAttr: "expiresAt"},
	"07b_ttl_gc.yaml":        {Source: "Messages", Schema: schema("userId:S", "msgId:S"), TTLAttr: "expiresAt"},
	"08_document.yaml":       {Source: "Anything", Schema: schema("pk:S", "sk:S"), View: "NEW_IMAGE"},
	"09_tags_lists.yaml":     {Source: "Mixed", Schema: schema("pk:S", "sk:N")},
	"10_regroup.yaml":        {Source: "Devices", Schema: schema("id:S")},
	"11_google.yaml":         {Source: "Users", Schema: schema("Username:S")},
}

func getenv(name string) string { return "secret of " + name }

// example compiles one of the worked examples.
func example(t tb, name string) *Program {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "mappings", name))
	if err != nil {
		t.Fatal(err)
	}
	tab := exampleTables[name]
	tab.Target = strings.ToLower(tab.Source)
	return compiled(t, tab, string(data))
}

// compiled compiles a mapping text for a table and fails on errors.
func compiled(t tb, tab Table, mapping string) *Program {
	t.Helper()
	tab.Pipeline = "test"
	if tab.Getenv == nil {
		tab.Getenv = getenv
	}
	if tab.Source == "" {
		tab.Source, tab.Target = "T", "t"
	}
	if mapping != "" {
		m, problems := ParseMapping("mapping.yaml", []byte(mapping))
		for _, p := range problems {
			t.Log(p)
		}
		tab.Mapping = m
	}
	p, problems := Compile(tab)
	for _, pr := range problems {
		t.Log(pr)
	}
	if p == nil {
		t.Fatal("mapping does not compile")
	}
	return p
}

func image(t tb, raw []byte) change.Image {
	t.Helper()
	var d change.Decoder
	img, err := d.Image(raw)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

type wantCell struct {
	Family    string
	Qualifier string
	TS        *int64 `json:"ts_ms"`
	Hex       string
}

type wantRow struct {
	Row   string
	Cells []wantCell
}

func TestWorkedExamplesGiveTheDocumentedCells(t *testing.T) {
	data, err := os.ReadFile("testdata/examples.json")
	if err != nil {
		t.Fatal(err)
	}
	var examples []struct {
		Name    string
		Mapping string
		Items   []json.RawMessage
		Expect  []wantRow
	}
	if err := json.Unmarshal(data, &examples); err != nil {
		t.Fatal(err)
	}
	for _, ex := range examples {
		t.Run(ex.Name, func(t *testing.T) {
			p := example(t, ex.Mapping)
			table := newModel()
			for i, item := range ex.Items {
				table.apply(t, put(t, p, int64(1000+i), item))
			}
			if diff := cmp.Diff(ex.Expect, table.documented()); diff != "" {
				t.Errorf("cells differ from the documented ones (-want +got):\n%s", diff)
			}
		})
	}
}

// put is the Write of a new item.
func put(t tb, p *Program, version int64, item []byte) *Write {
	t.Helper()
	w := new(Write)
	c := insertion(t, p, version, item)
	if err := p.Change(new(change.Decoder), c, w); err != nil {
		t.Fatal(err)
	}
	return w
}

func insertion(t tb, p *Program, version int64, item []byte) *change.Change {
	return &change.Change{Op: change.Insert, Version: change.Version(version), Created: change.Millis(version),
		Keys: keysOf(t, p, item), New: item}
}

func keysOf(t tb, p *Program, item []byte) []byte {
	t.Helper()
	k, err := p.prog.Table.Schema.Canonical(nil, image(t, item))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestGoogleSampleRowIsByteEqual(t *testing.T) {
	data, err := os.ReadFile("testdata/sample_dynamodb_row.json")
	if err != nil {
		t.Fatal(err)
	}
	var line struct{ Item json.RawMessage }
	if err := json.Unmarshal(data, &line); err != nil {
		t.Fatal(err)
	}
	want := struct {
		Key   string `json:"row_key"`
		Cells []struct{ Q, V string }
	}{}
	data, err = os.ReadFile("testdata/sample_row.google_out.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	preset := compiled(t, Table{Source: "Users", Target: "users", Schema: schema("Username:S")}, "preset: google")
	for _, p := range []*Program{preset, example(t, "11_google.yaml")} {
		rows, err := p.Project(image(t, line.Item))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, c := range rows[0].Cells {
			if c.Family != "cf1" || c.Time != 0 || !c.Mapped {
				t.Errorf("cell %s: family %s time %d mapped %v, want cf1 0 true", c.Qualifier, c.Family, c.Time, c.Mapped)
			}
			got[string(c.Qualifier)] = string(c.Value)
		}
		wanted := map[string]string{}
		for _, c := range want.Cells {
			wanted[c.Q] = c.V
		}
		if diff := cmp.Diff(wanted, got); diff != "" || string(rows[0].Key) != want.Key {
			t.Errorf("row %q (-want +got):\n%s", rows[0].Key, diff)
		}
	}
}

// documented is the table as the documented examples write it: version times are null.
func (m *model) documented() (out []wantRow) {
	for _, key := range m.keys() {
		row := wantRow{Row: key}
		for _, c := range m.rows[key].cells {
			if strings.HasPrefix(c.family, "_tr_") {
				continue
			}
			w := wantCell{Family: c.family, Qualifier: c.qual, Hex: hex.EncodeToString([]byte(c.value))}
			if c.mapped {
				w.TS = &c.time
			}
			row.Cells = append(row.Cells, w)
		}
		slices.SortStableFunc(row.Cells, func(a, b wantCell) int {
			if c := strings.Compare(a.Family+"\x00"+a.Qualifier, b.Family+"\x00"+b.Qualifier); c != 0 {
				return c
			}
			if a.TS != nil && b.TS != nil {
				return int(*b.TS - *a.TS)
			}
			return 0
		})
		if len(row.Cells) > 0 {
			out = append(out, row)
		}
	}
	return out
}
