package preflight

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/price"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// TestCostWithoutChangesIsOfEachTable: by its open shards and its own poll. Of streams that
// cannot be listed there is no number.
func TestCostWithoutChangesIsOfEachTable(t *testing.T) {
	s := newStage(t)
	s.CreateTable("Users")
	s.cfg.Tables = append(s.cfg.Tables, config.Table{
		Source: "Users", Target: "users", OnTTLExpiry: "delete", IdlePoll: config.Duration(time.Minute),
	})
	_, r := s.run(t, Options{})
	if len(r.Tables) != 2 || r.Tables[0].Idle == nil || r.Tables[1].Idle == nil || r.Running == nil {
		t.Fatalf("%+v", r)
	}
	orders, users := *r.Tables[0].Idle, *r.Tables[1].Idle
	if orders.Shards == 0 || orders != price.IdleOf(orders.Shards, time.Second, 1) {
		t.Errorf("Orders: %+v", orders)
	}
	if users.Shards == 0 || users != price.IdleOf(users.Shards, time.Minute, 1./60) {
		t.Errorf("Users: %+v", users)
	}
	all := r.Running.Idle
	if all.Shards != orders.Shards+users.Shards || all.Reads != orders.Reads+users.Reads || all.Poll != 1 ||
		all.Dollars != price.Cents(price.StreamReadDollars(all.Reads)) {
		t.Errorf("together: %+v", all)
	}
	if r.Running.Bytes == 0 || len(r.Running.Storages) != 4 || r.Running.Storages[0].Nodes != 1 {
		t.Errorf("storage: %+v", r.Running)
	}

	refused := fault.Rule{Effect: fault.Error, Code: "AccessDeniedException", Operation: "DescribeStream"}
	if err := s.Faults.Inject(refused); err != nil {
		t.Fatal(err)
	}
	_, r = s.run(t, Options{})
	if r.Tables[0].Idle != nil || r.Running.Idle != (price.Idle{}) || r.Running.Bytes == 0 {
		t.Errorf("streams that cannot be listed: %+v, %+v", r.Tables[0].Idle, r.Running)
	}
}
