package worker

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/transform"
)

// Compile compiles the mappings of an order, and returns the program of its table, and all.
func Compile(o *delegation.Order) (own *transform.Program, all []*transform.Program, err error) {
	if all, err = CompileAll(o.Pipeline, o.Target, o.Mappings); err != nil {
		return nil, nil, err
	}
	for i, p := range all {
		if o.Mappings[i].Table == o.Table {
			own = p
		}
	}
	if own == nil {
		return nil, nil, &errOther{"the order has no mapping of its table"}
	}
	return own, all, nil
}

// CompileAll compiles the mappings of all tables of a target. They are compiled together: which
// rows an item owns alone depends on all of them. Programs of another hash than the daemon's are
// refused: this program may be of another version.
func CompileAll(pipeline, target string, mappings []delegation.Mapping) ([]*transform.Program, error) {
	tables := make([]transform.Table, len(mappings))
	for i, m := range mappings {
		tables[i] = transform.Table{
			Pipeline: pipeline, Source: m.Table, Target: target, Schema: m.Schema, View: m.View, TTLAttr: m.TTLAttr,
		}
		var kept transform.Kept
		err := json.Unmarshal(m.Kept, &kept)
		if err == nil {
			err = kept.Apply(&tables[i])
		}
		if err != nil {
			return nil, &errOther{fmt.Sprintf("read the mapping of %s: %s", m.Table, err)}
		}
	}
	all, problems := transform.CompileAll(tables)
	for i, p := range all {
		if p == nil {
			return nil, &errOther{fmt.Sprintf("this program does not compile the mapping of %s: %v", mappings[i].Table,
				problems)}
		}
		hash := p.Hash()
		if got := hex.EncodeToString(hash[:]); got != mappings[i].Hash {
			return nil, &errOther{fmt.Sprintf("this program compiles the mapping of %s to %s, the daemon to %s: use the "+
				"daemon's version", mappings[i].Table, got, mappings[i].Hash)}
		}
	}
	return all, nil
}
