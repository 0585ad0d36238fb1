package transform

import (
	"strings"
	"testing"
)

// compiledTables compiles tables of one target together.
func compiledTables(t *testing.T, mappings map[string]string) map[string]*Program {
	t.Helper()
	var tables []Table
	for source, text := range mappings {
		m, problems := ParseMapping(source+".yaml", []byte(text))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		tables = append(tables, Table{Pipeline: "p", Source: source, Target: "t", Schema: schema("pk:S", "sk:S"), Mapping: m,
			Getenv: getenv})
	}
	programs, problems := CompileAll(tables)
	out := map[string]*Program{}
	for i, p := range programs {
		if p == nil {
			t.Fatalf("%s does not compile: %v", tables[i].Source, problems)
		}
		out[tables[i].Source] = p
	}
	return out
}

func programs(m map[string]*Program) (all []*Program) {
	for _, p := range m {
		all = append(all, p)
	}
	return all
}

func TestMappingChanges(t *testing.T) {
	const head = "families: {d: {}, x: {}, h: {max_versions: 3}, " +
		"aged: {max_versions: 1, max_age: 30d, combine: union}}\nrules:\n"
	const a = `- {name: a, match: {pk: "A#{p}", sk: "{s}"}, row: "A#{p}#{s}", cells: [{attr: v, to: "d:v"}]}` + "\n"
	const b = `- {name: b, match: {pk: "B#{p}", sk: "{s}"}, row: "B#{p}#{s}", cells: [{attr: v, to: "d:v"}]}` + "\n"
	const index = `index: [{name: i, row: "i#{p}#{s}", cells: [{attr: v, to: "x:v"}]}], cells: [`
	const rest = `- {name: rest, match: {pk: "{p}", sk: "{s}"}, drop: true}` + "\n"
	const all = `- {name: all, match: {pk: "{p}", sk: "{s}"}, row: "x#{p}#{s}", cells: [{attr: v, to: "d:v"}]}` + "\n"
	edited := func(old, now string) string { return strings.Replace(a, old, now, 1) }
	for _, c := range []struct {
		name, old, now string
		kind           MappingKind
		reason, why    string // parts of them; why "": acceptable
	}{
		{"nothing", a, a, SameCells, "", ""},
		{"another name", a, edited("name: a", "name: z"), SameCells, "", ""},
		{"removals", a, edited("cells", "on_ttl_expiry: keep, cells"), SameCells, "on_ttl_expiry", ""},
		{"a column more", a, edited(`"d:v"}`, `"d:v"}, {attr: w, to: "x:w"}`), SameRows, "rule a: column x:w is new", ""},
		{"a column less", edited(`"d:v"}`, `"d:v"}, {attr: w, to: "x:w"}`), a, SameRows, "rule a: column x:w is gone", ""},
		{"a column that becomes a fallback", a, edited(`"d:v"}`, `"x:v", as: int64, fallback: d}`), SameRows,
			"rule a: column d:v is now written by `attr: v → x:v`, for values that do not fit", ""},
		{"a column that a fallback was", edited(`"d:v"}`, `"x:v", as: int64, fallback: d}`), a, SameRows,
			"column d:v has an entry of its own now; before, `attr: v → x:v`, for values that do not fit", ""},
		{"a column that all take over", a, edited(`{attr: v, to: "d:v"}`, `{attrs: all, except: [pk, sk], to: "d:{attr}"}`),
			SameRows, "column d:v is now written by `attrs: all → d:{attr}`", ""},
		{"a column that all leave out", a, edited(`{attr: v, to: "d:v"}`,
			`{attrs: all, except: [pk, sk, v], to: "d:{attr}"}`), SameRows, "column d:v is gone", ""},
		{"another encoding", a, edited(`"d:v"}`, `"d:v", as: json}`), SameRows, "d:v is written in another way", ""},
		{"a rule for refused items", a, a + b, SameRows, "rule b is new", ""},
		{"a rule for dropped items", a + rest, a + b + rest, SameRows, "rule b is new", ""},
		{"a rule in front that takes others", b, a + b, SameRows, "rule a is new", ""},
		{"a rule in front that takes the same", all, a + all, RowsMove, "may take items from rule all", "items leave rows"},
		{"a rule less", a + b, a, RowsMove, "rule b is gone", "items leave rows"},
		{"another order", a + b, b + a, RowsMove, "rule a is gone, comes later", "items leave rows"},
		{"dropped now", a, `- {name: a, match: {pk: "A#{p}", sk: "{s}"}, drop: true}`, RowsMove, "drops its items", "remain"},
		{"other items", a, edited("A#{p}\", sk", "C#{p}\", sk"), RowsMove, "rule a is gone", "items leave rows"},
		{"another row", a, edited(`row: "A#`, `row: "Z#`), RowsMove, `the row is "Z#{p}#{s}"`, "items leave rows"},
		{"segments", a, "segments: escape\n" + head + a, RowsMove, "segments", "items leave rows"},
		{"an index more", a, edited("cells: [", index), SameRows, "index i is new", ""},
		{"an index less", edited("cells: [", index), a, RowsMove, "index i is gone", "items leave rows"},
		{"a history", a, edited(`"d:v"}`, `"d:v"}, {attr: w, to: "h:w"}`), SameRows, "h:w is new", "keeps histories"},
		{"a history before", edited(`"d:v"}`, `"d:v"}, {attr: w, to: "h:w"}`), a, SameRows, "h:w is gone", "the old mapping"},
		{"an age", a, edited(`"d:v"}`, `"d:v"}, {attr: w, to: "aged:w"}`), SameRows,
			"aged:w is new", "age of its cells anew"},
		{"class R to K", a, edited(`row: "A#`, `owns: cells, row: "A#`), SameCells, "", "was of class R (replace-row)"},
		{"kept rows", edited("cells", "on_ttl_expiry: keep, cells"),
			edited("cells: [", `on_ttl_expiry: keep, cells: [{attr: w, to: "d:w"}, `), SameRows,
			"remain as the old mapping", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := func(s string) string {
				if strings.Contains(s, "families:") {
					return s
				}
				return head + s
			}
			old := compiledTables(t, map[string]string{"T": text(c.old)})
			now := compiledTables(t, map[string]string{"T": text(c.now)})
			got := DiffMapping(old["T"], now["T"], programs(old), programs(now))
			if got.Kind != c.kind || !strings.Contains(strings.Join(got.Reasons, "\n"), c.reason) {
				t.Errorf("%s, %q; want %s and %q", got.Kind, got.Reasons, c.kind, c.reason)
			}
			if got.Acceptable != (c.why == "") || !strings.Contains(got.Why, c.why) {
				t.Errorf("acceptable %v, %q; want %q", got.Acceptable, got.Why, c.why)
			}
		})
	}
}

// TestSecondTableTurnsRowsIntoSharedOnes: the mapping itself stays, but its rows change their
// class, and with it the guard that protects them.
func TestSecondTableTurnsRowsIntoSharedOnes(t *testing.T) {
	const one = `families: {d: {}, x: {}}
rules:
- {name: a, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "d:v"}]}`
	const two = `families: {d: {}, x: {}}
rules:
- {name: b, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "x:v"}]}`
	old, now := compiledTables(t, map[string]string{"T": one}), compiledTables(t, map[string]string{"T": one, "U": two})
	got := DiffMapping(old["T"], now["T"], programs(old), programs(now))
	if got.Acceptable || !strings.Contains(got.Why, "was of class R (replace-row) and is of class K (by-key) now") {
		t.Errorf("acceptable %v: %q", got.Acceptable, got.Why)
	}
	if got = DiffMapping(now["T"], old["T"], programs(now), programs(old)); got.Acceptable {
		t.Error("back from K to R is acceptable")
	}
}
