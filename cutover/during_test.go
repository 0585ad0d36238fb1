package cutover_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// A write that comes while both sides are compared is behind the fence, and the comparison need not
// show it: it may have read the item before. Its shard is not read until the comparison is over, so
// no look at the log finds it by then. The cutover must wait until every shard is read past the end
// of the comparison, and refuse.
func TestWriteDuringTheComparisonWhoseShardIsReadLateForbidsTheCertificate(t *testing.T) {
	w := newWorld(t, 992, "")
	w.d = w.Run()
	w.put(5, "1")
	drains := 0
	_, said, err := w.cutover(cutover.Options{Say: func(format string, args ...any) {
		switch text := fmt.Sprintf(format, args...); {
		case strings.Contains(text, "items are equal"): // all items are compared
			if err := w.Faults.Inject(fault.Rule{Effect: fault.Error, Operation: "GetRecords",
				Code: "InternalServerError"}); err != nil {
				t.Error(err)
			}
			w.Put("Orders", "hats", "late", `"n":{"N":"2"}`)
		case strings.HasPrefix(text, "Draining"):
			if drains++; drains == 2 {
				w.Faults.Calm()
			}
		}
	}})
	w.Faults.Calm()
	if err == nil || !strings.Contains(err.Error(), "Orders was written to behind the fence: Bigtable lacks 1 change") {
		t.Errorf("%v\n%s", err, said)
	}
}

// Another operator takes the fence away while the comparison runs: the replicator writes again, and
// there is nothing to certify. So it is when a third one raises another fence meanwhile.
func TestUndoDuringTheComparisonForbidsTheCertificate(t *testing.T) {
	for name, seed := range map[string]uint64{"undone": 993, "undone, and fenced again": 994} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, seed, "")
			w.d = w.Run()
			w.put(5, "1")
			_, said, err := w.cutover(cutover.Options{Say: func(format string, args ...any) {
				if !strings.HasPrefix(fmt.Sprintf(format, args...), "Verifying") {
					return
				}
				w.undo()
				if name != "undone" {
					clients, s := w.Pair("Orders")
					other := cutover.New(w.Config, clients, s, cutover.Options{Say: func(string, ...any) {}})
					if err := cutover.Raise(other, t.Context()); err != nil {
						t.Error(err)
					}
				}
			}})
			refused := (*cutover.Refused)(nil)
			if !errors.As(err, &refused) || !refused.Undone || !strings.Contains(err.Error(), "taken away meanwhile") {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}
