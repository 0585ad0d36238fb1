package pipeline_test

import (
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// Rule 13: one answer that there is no such table is shown by nothing; the same answer again names
// the table as deleted. What its stream still has is applied.
func TestDeletedTableIsNamed(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.createTable("Users")
	r := w.start("Orders", "Users")
	w.changeItems("Orders", 1, 20)
	r.settle()
	if err := w.faults.Inject(fault.Rule{
		Effect: fault.Error, Operation: "DescribeTable", Code: "ResourceNotFoundException", Times: 1,
	}); err != nil {
		t.Fatal(err)
	}
	r.until("one answer is given", func() bool { return w.faults.Pending() == 0 })
	if v := r.p.Status().Verdict; v.State == status.StateDeleted {
		t.Errorf("after one answer: %+v", v)
	}
	r.ready()

	w.changeItems("Orders", 2, 20)
	w.post("DeleteTable", `{"TableName":"Orders"}`)
	deleted := func() bool { return r.p.Status().Verdict.State == status.StateDeleted }
	r.until("it is named", deleted)
	r.until("all is applied", func() bool { return r.table("Orders").Ended && deleted() })
	if st := r.table("Orders"); !st.Has(status.WhyVanished) || st.Has(status.WhyStreamOff) {
		t.Errorf("it is not ready because of %v", st.Why)
	}
}
