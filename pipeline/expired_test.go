package pipeline_test

import (
	"testing"

	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// TestExpiredSessionHaltsNoTable: what renews the session ends it, and reading goes on at once.
func TestExpiredSessionHaltsNoTable(t *testing.T) {
	long(t, "7 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.createTable("Users")
	r := w.start("Orders", "Users")
	w.changeItems("Orders", 1, 20)
	r.settle()
	for _, op := range []string{"GetRecords", "GetShardIterator", "DescribeStream", "DescribeTable"} {
		if err := w.faults.Inject(fault.Rule{Effect: fault.Error, Operation: op, Code: "ExpiredTokenException"}); err != nil {
			t.Fatal(err)
		}
	}
	r.until("nothing has been read for a while", func() bool { return r.table("Orders").SourceLag > 5 })
	for _, name := range []string{"Orders", "Users"} {
		if st := r.table(name); st.State != "running" || len(st.Halts) > 0 {
			t.Errorf("%s is %s: %v", name, st.State, st.Halts)
		}
	}
	w.faults.Calm()
	w.changeItems("Orders", 2, 20)
	r.settle()
	r.equal()
	r.ready()
}
