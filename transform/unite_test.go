package transform

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
)

// TestChangesThatEachLeaveSomethingAreNotUnited: united, only the last of them would.
func TestChangesThatEachLeaveSomethingAreNotUnited(t *testing.T) {
	for name, mapping := range map[string]string{
		"a merged value": `{families: {top: {aggregate: max}}, rules: [{name: r, match: {pk: "{p}"}, row: "{p}",
    cells: [{attr: v, to: "top:v", as: int64, ts: "0"}]}]}`,
		"an archived copy": `{families: {d: {}, arch: {}}, rules: [{name: r, match: {pk: "{p}"}, row: "{p}",
    cells: [{attr: v, to: "d:v"}], on_ttl_expiry: "archive:arch"}]}`,
		"an emptied row": `{families: {d: {}}, rules: [{name: r, match: {pk: "{p}"}, row: "{p}",
    cells: [{attr: v, to: "d:v"}], on_remove: row}]}`,
		"a version": `{families: {d: {max_versions: 3}}, rules: [{name: r, match: {pk: "{p}"}, row: "{p}",
    cells: [{attr: v, to: "d:v"}]}]}`,
		"a fallback's": `{families: {n: {}, t: {max_versions: 3}}, rules: [{name: r, match: {pk: "{p}"}, row: "{p}",
    cells: [{attr: v, to: "n:v", as: int64, fallback: t}]}]}`,
	} {
		if compiled(t, Table{Schema: schema("pk:S")}, mapping).CanCoalesce() {
			t.Errorf("%s: changes are united", name)
		}
	}
	if !compiled(t, Table{Schema: schema("pk:S")}, "").CanCoalesce() {
		t.Error("plain changes are not united")
	}
}

// TestUnitedChangesEndAsOneByOne: whatever a mapping leaves behind of an earlier life, uniting must
// not change it.
func TestUnitedChangesEndAsOneByOne(t *testing.T) {
	united := 0
	for name, rules := range map[string]string{
		"times that stay": `- {name: r, match: {pk: "{p}", sk: "v{n:d}"}, row: "{p}",
    cells: [{attr: v, to: "keep:v", ts: "{n|int}", cell_id: ts}]}`,
		"times that go": `- {name: r, match: {pk: "{p}", sk: "v{n:d}"}, row: "{p}",
    cells: [{attr: v, to: "go:v", ts: "{n|int}", cell_id: ts}]}`,
		"kept when expired": `- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}",
    cells: [{attrs: all, to: "d:{attr}"}], on_ttl_expiry: keep}`,
		"kept, of several rules": "- {name: a, match: {v: {exists: true}}, row: \"a#{pk}#{sk}\", cells: [{attr: v, to: " +
			"\"d:v\"}], on_ttl_expiry: keep}\n- {name: b, match: {pk: \"{p}\", sk: \"{s}\"}, row: \"b#{p}#{s}\", cells: " +
			"[{attr: w, to: \"d:w\"}], on_ttl_expiry: keep}",
		"kept, in a shared row": `- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}",
    cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}], on_ttl_expiry: keep}`,
		"archived": `- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}",
    cells: [{attrs: all, to: "d:{attr}"}], on_ttl_expiry: "archive:arch"}`,
		"a tombstone": `- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}",
    cells: [{attrs: all, to: "h:{attr}"}], on_remove: tombstone}`,
		"moves": `- {name: r, match: {pk: "{p}", sk: "{s}", v: {exists: true}}, row: "{v}#{p}#{s}",
    cells: [{attrs: all, to: "d:{attr}"}]}` + "\n" + `- {name: rest, match: {pk: "{p}", sk: "{s}"}, drop: true}`,
		"a sidecar and a fallback": `- {name: r, types: "t:{s}", match: {pk: "{p}", sk: "{s}"}, row: "{p}",
    cells: [{attr: v, to: "d:{s}", as: int64, fallback: f}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, Table{Schema: schema("pk:S", "sk:S"), TTLAttr: "exp"}, `
families: {d: {}, f: {}, t: {}, arch: {}, h: {max_versions: 9}, keep: {max_versions: 9, removed: keep},
  go: {max_versions: 9}}
rules:
`+rules)
			if !p.CanCoalesce() {
				return
			}
			united++
			rapid.Check(t, func(t *rapid.T) {
				h := drawHistory(t, p, two("pk,sk", "a|v1", "a|v2", "b|v1"), anyAttrs("v", "w"))
				if slices.ContainsFunc(h.changes, func(c *change.Change) bool { return refused(t, p, c) }) {
					return // what follows a dead letter waits with it
				}
				for _, c := range h.changes {
					c.TTL = c.Op == change.Remove && rapid.Bool().Draw(t, "expired")
				}
				single, together := newModel(), newModel()
				for _, c := range h.changes {
					single.apply(t, writeOf(t, p, c))
				}
				deliver(t, p, together, h.changes)
				siblings := map[string]bool{"keep": true, "go": true}
				if diff := cmp.Diff(single.plain(siblings), together.plain(siblings)); diff != "" {
					t.Fatalf("(-one by one +united):\n%s", diff)
				}
			})
		})
	}
	if united < 3 {
		t.Errorf("only %d mappings unite changes: the test proves little", united)
	}
}
