package test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTwoReplicasWriteNoTwoTablesIntoOneTarget: one replica has found a table and waits for its target when another
// table appears that would have the same target; a second replica starts, and finds both at once.
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
	both := func() (names []string) {
		for _, name := range []string{"xyz", "shop-xyz"} {
			for _, d := range []*daemon{first, second} {
				if d.table(name).State == "running" {
					names = append(names, name)
					break
				}
			}
		}
		return names
	}
	first.until("a table runs", func() bool { return len(both()) > 0 })
	until := time.Now().Add(10 * time.Second)
	for time.Now().Before(until) {
		w.Put("xyz", "a", "1", `"n":{"N":"1"}`)
		w.Put("shop-xyz", "a", "1", `"n":{"N":"2"}`)
		if names := both(); len(names) > 1 {
			t.Errorf("%v are written into one target", names)
			break
		}
		time.Sleep(300 * time.Millisecond)
	}
	a, _ := first.status()
	b, _ := second.status()
	t.Logf("%v %v %v\n%v %v %v", a.Ready, first.replicated(), a.Reasons, b.Ready, second.replicated(), b.Reasons)
}
