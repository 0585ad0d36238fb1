package restore

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/putback"
)

// Limits say which table items are restored to, and how fast.
type Limits struct {
	Table      string
	TTL        string // as the user has it
	TTLAttr    string // of a table whose time to live is off
	WriteUnits float64
	ReadUnits  float64 // of looking which items exist; 0: by WriteUnits and by what is provisioned
	Write      bool    // else a dry run
}

// CheckTable describes the table, and returns why the items cannot be written to it.
func (r *Restore) CheckTable(ctx context.Context, l Limits) error {
	info, err := r.Source.Table(ctx, l.Table)
	if err != nil {
		return source.Explain(err)
	}
	if info.Status != "ACTIVE" && info.Status != "UPDATING" {
		return failure.With(failure.Unready, "wait until it is ACTIVE",
			fmt.Errorf("table %s is %s", info.Name, info.Status))
	}
	r.Into, r.TTLAttr = &info, info.TTLAttr
	if r.TTLAttr == "" {
		r.TTLAttr = l.TTLAttr
	}
	changes := r.TTL.Mode == putback.Remove || r.TTL.Mode == putback.Later
	switch key := info.Schema; {
	case l.TTLAttr != "" && l.TTLAttr != r.TTLAttr:
		return failure.Usagef("leave --ttl-attribute out", "items of %s expire by %q", info.Name, r.TTLAttr)
	case r.TTLAttr != "" && r.TTL.Mode == putback.Unchosen:
		return needTTL(fmt.Sprintf("items of %s expire by %q", info.Name, r.TTLAttr))
	case changes && r.TTLAttr == "" && info.TTLError != nil:
		return failure.With(failure.Unready, "name the attribute with --ttl-attribute, or permit DescribeTimeToLive",
			info.TTLError)
	case changes && r.TTLAttr == "":
		return failure.Usagef("--ttl-attribute NAME, or --ttl keep",
			"time to live of %s is off: nothing says which attribute --ttl %s is about", info.Name, l.TTL)
	case changes && (key.Partition.Name == r.TTLAttr || key.Sort != nil && key.Sort.Name == r.TTLAttr):
		return failure.Usagef("--ttl keep", "%q is part of the key of %s: restore cannot change it", r.TTLAttr,
			info.Name)
	}
	reads, err := info.ReadUnitsFor(l.ReadUnits, 0)
	if err != nil {
		return fmt.Errorf("choose read budget: %w", err)
	}
	if l.ReadUnits == 0 {
		reads = max(reads, l.WriteUnits)
	}
	r.Reads = source.NewBudget(reads)
	if l.Write {
		r.Writer = putback.New(r.Source, &info, l.WriteUnits)
	}
	return nil
}
