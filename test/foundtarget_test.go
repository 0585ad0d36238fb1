package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTwoReplicasWriteNoTwoTablesIntoOneTarget: one replica has found a table and waits for its
// target when another table appears that would have the same target; a second replica starts, and
// finds both at once.
func TestTwoReplicasWriteNoTwoTablesIntoOneTarget(t *testing.T) {
	long(t, "20 s")
	w := newWorld(t, 1701)
	w.queue = fmt.Sprintf("{url: %q, replicas: 1, max_bytes: 64MiB}", w.NATS.URL())
	w.testing = strings.Replace(periods("300ms"), "{", "{find: 200ms, ", 1)
	w.tables = []string{
		`{source: "shop-*", target: "{table}"}`,
		`{source: "x*", target: "shop-{table}"}`,
	}
	w.configure()
	w.CreateTable("xyz")
	w.Put("xyz", "a", "0", `"n":{"N":"1"}`)
	first := w.run()
	first.until("xyz waits for its target", func() bool {
		return strings.Contains(strings.Join(first.table("xyz").Reasons, " "), "schema --apply")
	})
	w.CreateTable("shop-xyz")
	w.Put("shop-xyz", "a", "0", `"n":{"N":"2"}`)
	second := w.run()
	second.until("it waits for a target too", func() bool {
		s, _ := second.status()
		return strings.Contains(strings.Join(s.Reasons, " "), "schema --apply")
	})
	w.ok("schema", "--apply")
	both := []*daemon{first, second}
	winner := ""
	first.until("one table is replicated, and the other replica stands by for it", func() bool {
		states := map[string][]string{}
		for _, d := range both {
			for _, name := range d.replicated() {
				states[name] = append(states[name], d.table(name).State)
			}
		}
		for name, of := range states {
			slices.Sort(of)
			if len(states) == 1 && slices.Equal(of, []string{"running", "standby"}) {
				winner = name
			}
		}
		running := 0
		for _, of := range states {
			if slices.Contains(of, "running") {
				running++
			}
		}
		if running > 1 {
			t.Fatalf("both tables are written into one target: %v", states)
		}
		return winner != ""
	})
	w.Put("xyz", "a", "1", `"n":{"N":"1"}`)
	w.Put("shop-xyz", "a", "1", `"n":{"N":"2"}`)
	owner, other := first, second
	if first.table(winner).State == "standby" {
		owner, other = second, first
	}
	owner.settle(winner)
	for _, d := range both {
		if s, _ := d.status(); !strings.Contains(strings.Join(s.Reasons, " "), "is that of "+winner+" already") {
			t.Errorf("the table that is left out is not named: %v", s.Reasons)
		}
	}
	owner.kill()
	other.until("it takes over", func() bool { return other.table(winner).State == "running" })
	w.Put(winner, "a", "2", `"n":{"N":"3"}`)
	other.settle(winner)
	c := w.begin(other, "verify", "--table", winner)
	if code := c.ends(); code != 0 || !strings.Contains(c.out.String(), "3 items") {
		t.Errorf("verify: exit %d: %s", code, c.out)
	}
}
