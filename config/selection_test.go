package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/problem"
)

// selecting returns a configuration with these entries of tables.
func selecting(start string, entries ...string) string {
	return "pipeline: shop\nsource: {region: eu-west-1" + start + "}\nbigtable: {project: p, instance: i}\n" +
		"queue: {dir: d}\narchive: {url: \"file:///a\"}\ntables:\n- " + strings.Join(entries, "\n- ") + "\n"
}

func TestSelectionsThatCannotWorkAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ entry, start, path, what string }{
		"a pattern":        {`{source: "orders-*", target: "{table}"}`, "", "", ""},
		"tags alone":       {`{tag: {a: b}, target: "shop-{table}"}`, "", "", ""},
		"archived only":    {`{source: "log?", archive: {}}`, "", "", ""},
		"a target for all": {`{source: "orders-*", target: orders}`, "", "tables[0].target", "must contain {table}"},
		"no target":        {`{source: "orders-*"}`, "", "tables[0].target", "required"},
		"an impossible target": {`{source: "orders-*", target: "my {table}"}`, "", "tables[0].target",
			"not a possible value"},
		"a long target": {`{source: "orders-*", target: "` + strings.Repeat("x", 50) + `{table}"}`, "",
			"tables[0].target", "not a possible value"},
		"a bracket": {`{source: "orders-[a]*", target: "{table}"}`, "", "tables[0].source", "no pattern"},
		"an impossible exception": {`{source: "o*", except: ["a b"], target: "{table}"}`, "", "tables[0].except[0]",
			"no pattern"},
		"an exception from one": {`{source: Orders, except: [a], target: o}`, "", "tables[0].except", "no selection"},
		"no tags":               {`{source: "orders-*", tag: {}, target: "{table}"}`, "", "tables[0].tag", "no tag"},
		"one export for all": {`{source: "o*", target: "{table}", backfill: {from: export, url: e}}`, "",
			"tables[0].backfill.url", "one table"},
		"neither": {`{target: orders}`, "", "tables[0].source", "required"},
		"a late start": {`{source: "o*", target: "{table}", backfill: none}`, ", start: latest", "source.start",
			"first changes"},
		"a template for one": {`{source: Orders, target: "{table}"}`, "", "tables[0].target", "not a possible value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := parse(t, selecting(c.start, c.entry))
			if c.path == "" && len(problems) == 0 {
				return
			}
			if len(problems) != 1 || problems[0].Path != c.path || !strings.Contains(problems[0].What, c.what) {
				t.Errorf("%v, want one at %q: %q", problems, c.path, c.what)
			}
		})
	}
}

// expand returns the tables that a configuration makes of listed ones, as source>target, and the
// problems.
func expand(t *testing.T, listed []Listed, entries ...string) (tables []string, problems []string, cfg *Config) {
	t.Helper()
	cfg, found := parse(t, selecting("", entries...))
	if problem.AnyError(found) {
		t.Fatal(found)
	}
	all, found := cfg.Expand(listed)
	for _, x := range all.Tables {
		text := x.Path + " " + x.Source + ">" + x.Target
		if x.Gone != "" {
			text += " " + string(x.Gone)
		}
		tables = append(tables, text)
	}
	for _, p := range found {
		problems = append(problems, p.Path+": "+p.What)
	}
	return tables, problems, all
}

func TestSelectionsChooseTables(t *testing.T) {
	long := "orders-" + strings.Repeat("x", 44)
	tagged := func(name string, tags ...string) Listed {
		l := Listed{Name: name, Tags: map[string]string{}}
		for i := 0; i+1 < len(tags); i += 2 {
			l.Tags[tags[i]] = tags[i+1]
		}
		return l
	}
	by := func(selection string, l Listed) Listed {
		l.Logged, l.By = true, selection
		return l
	}
	for name, c := range map[string]struct {
		entries  []string
		listed   []Listed
		tables   []string
		problems []string
	}{
		"by name, in order": {
			[]string{`{source: "orders-?u", target: "shop-{table}"}`, `{source: Products, target: products}`},
			[]Listed{{Name: "orders-us"}, {Name: "orders-eu"}, {Name: "orders-ru"}, {Name: "Products"}, {Name: "xorders-eu"}},
			[]string{"tables[1] Products>products", "tables[0] orders-eu>shop-orders-eu",
				"tables[0] orders-ru>shop-orders-ru"}, nil,
		},
		"an entry wins": {
			[]string{`{source: "orders-*", target: "{table}"}`, `{source: orders-eu, target: europe}`},
			[]Listed{{Name: "orders-eu"}, {Name: "orders-us"}},
			[]string{"tables[1] orders-eu>europe", "tables[0] orders-us>orders-us"}, nil,
		},
		"with exceptions": {
			[]string{`{source: "o*", except: [o1, "*-test"], target: "{table}"}`},
			[]Listed{{Name: "o1", Logged: true}, {Name: "o2"}, {Name: "o3-test"}}, []string{"tables[0] o2>o2"}, nil,
		},
		"by all tags, and by name too": {
			[]string{`{source: "o*", tag: {a: "1", b: "2"}, target: "{table}"}`},
			[]Listed{tagged("o1", "a", "1", "b", "2", "c", "3"), tagged("o2", "a", "1"), tagged("o3", "a", "1", "b", "x"),
				tagged("p1", "a", "1", "b", "2"), {Name: "o4"}},
			[]string{"tables[0] o1>o1"}, nil,
		},
		"two selections": {
			[]string{`{source: "orders-*", target: "{table}"}`, `{tag: {a: "1"}, target: "x-{table}"}`},
			[]Listed{tagged("orders-eu", "a", "1"), tagged("orders-us"), tagged("other", "a", "1")},
			[]string{"tables[0] orders-us>orders-us", "tables[1] other>x-other"},
			[]string{"tables[1]: table orders-eu is chosen by tables[0] and by tables[1]"},
		},
		"tags that may not be read": {
			[]string{`{tag: {a: "1"}, target: "x-{table}"}`},
			[]Listed{{Name: "new", Unread: "denied"}, {Name: "logged", Unread: "denied", Logged: true},
				tagged("other", "a", "1"), {Name: "running", Unread: "denied", By: "tables[0]"}},
			[]string{"tables[0] logged>x-logged", "tables[0] other>x-other", "tables[0] running>x-running"},
			[]string{"tables[0]: the tags of table new cannot be read, so it is not known whether it is chosen: denied"},
		},
		"names that Bigtable does not take": {
			[]string{`{source: "*", target: "{table}"}`},
			[]Listed{{Name: long}, {Name: "-eu"}, {Name: "tailrace_state"}},
			nil,
			[]string{
				"tables[0].target: -eu, the target of -eu, has 3 characters or one that Bigtable does not allow: " +
					"up to 50 letters, digits, _ . -",
				"tables[0].target: " + long + ", the target of " + long +
					", has 51 characters or one that Bigtable does not allow: up to 50 letters, digits, _ . -",
				"tables[0].target: tailrace_state, the target of tailrace_state, holds the state of the pipelines",
			},
		},
		"one target for two": {
			[]string{`{source: "*-eu", target: "x-{table}"}`, `{source: "x-*", target: "{table}"}`,
				`{source: One, target: x-a-eu}`},
			[]Listed{{Name: "a-eu"}, {Name: "b-eu"}, {Name: "x-b"}},
			[]string{"tables[2] One>x-a-eu", "tables[0] b-eu>x-b-eu", "tables[1] x-b>x-b"},
			[]string{"tables[0].target: x-a-eu, the target of a-eu, is that of One already"},
		},
		"archived only": {
			[]string{`{source: "log-*", archive: {}}`}, []Listed{{Name: "log-1"}, {Name: "log-2"}},
			[]string{"tables[0] log-1>", "tables[0] log-2>"}, nil,
		},
		"with a log it stays": {
			[]string{`{source: "o*", tag: {a: "1"}, target: "{table}"}`},
			[]Listed{{Name: "o1", Logged: true, Missing: true}, {Name: "o2", Logged: true, Tags: map[string]string{}},
				{Name: "o3", Logged: true}, {Name: "o4", Tags: map[string]string{}}, {Name: "p1", Logged: true}},
			[]string{"tables[0] o1>o1 " + string(GoneVanished), "tables[0] o2>o2 " + string(GoneTags), "tables[0] o3>o3"}, nil,
		},
		"a new table does not take the target of one that is replicated": {
			[]string{`{source: "*-eu", except: ["x-*"], target: "x-{table}"}`, `{source: "x-*", target: "{table}"}`},
			[]Listed{{Name: "a-eu"}, {Name: "x-a-eu", Logged: true, By: "tables[1]"}, {Name: "b-eu"},
				{Name: "x-b-eu", Logged: true}},
			[]string{"tables[1] x-a-eu>x-a-eu", "tables[1] x-b-eu>x-b-eu"},
			[]string{"tables[0].target: x-a-eu, the target of a-eu, is that of x-a-eu already",
				"tables[0].target: x-b-eu, the target of b-eu, is that of x-b-eu already"},
		},
		"which of several it began by is not guessed": {
			[]string{`{tag: {a: "1"}, target: "a-{table}"}`, `{tag: {b: "1"}, target: "b-{table}"}`},
			[]Listed{{Name: "unknown", Logged: true}, {Name: "vanished", Logged: true, Missing: true},
				{Name: "went", Logged: true, Missing: true, By: "tables[1]"}, tagged("untagged")},
			[]string{"tables[1] went>b-went " + string(GoneVanished)},
			[]string{"tables[1]: table unknown is chosen by tables[0] and by tables[1]",
				"tables[1]: table vanished is chosen by tables[0] and by tables[1]"},
		},
		"a running table goes on as it began": {
			[]string{`{tag: {a: "1"}, target: "a-{table}"}`, `{tag: {b: "1"}, target: "b-{table}"}`},
			[]Listed{by("tables[1]", tagged("both", "a", "1", "b", "1")), by("tables[1]", tagged("moved", "a", "1")),
				by("tables[1]", tagged("none")), by("tables[1]", tagged("same", "b", "1"))},
			[]string{"tables[1] both>b-both " + string(GoneOthers), "tables[1] moved>b-moved " + string(GoneOthers),
				"tables[1] none>b-none " + string(GoneTags), "tables[1] same>b-same"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tables, problems, all := expand(t, c.listed, c.entries...)
			if d := cmp.Diff(c.tables, tables); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.problems, problems); d != "" {
				t.Error(d)
			}
			if again, _ := all.Expand(c.listed); !cmp.Equal(again, all) {
				t.Errorf("expanding twice: %s", cmp.Diff(all, again))
			}
		})
	}
}

// TestTagsAreAskedForWhereTheyDecide: each table costs a call.
func TestTagsAreAskedForWhereTheyDecide(t *testing.T) {
	_, _, cfg := expand(t, nil, `{source: "o*", tag: {a: "1"}, target: "{table}"}`, `{source: "p*", target: "{table}"}`,
		`{source: one, target: one}`)
	for name, want := range map[string]bool{"o1": true, "p1": false, "one": false} {
		if got := cfg.SelectsTags(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !cfg.Selecting() {
		t.Error("it has selections")
	}
}
