package bigtable

import (
	"context"
	"maps"
	"regexp"
	"strings"
	"sync"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// maxRule is the service's limit for a serialised garbage-collection rule, in bytes.
const maxRule = 500

// The forms of ids that the service accepts.
var (
	familyName = regexp.MustCompile(`^[-_.a-zA-Z0-9]{1,64}$`)
	tableName  = regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$`)
)

// table holds the front's own data about a table. Writes hold mu shared. Reads and schema changes
// hold it exclusively, because the emulator's reads race with its writes.
type table struct {
	mu       sync.RWMutex
	families map[string]*btapb.Type   // family → type of its cells
	rules    map[string]*btapb.GcRule // family → rule; not passed to the emulator, see collect.go
	widths   widths
}

// tableOf returns a table, or the service's error for a table that does not exist.
func (f *Front) tableOf(name string) (*table, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	t := f.tables[name]
	if t == nil {
		return nil, status.Errorf(codes.NotFound, "Table not found: %s", name)
	}
	return t, nil
}

// schema answers the admin calls on tables and families. Other calls go to the emulator unchanged.
func (f *Front) schema(ctx context.Context, req any, h grpc.UnaryHandler) (any, error) {
	switch r := req.(type) { // what changes nothing
	case *btapb.GetTableRequest:
		if err := f.Faults.admitSetting(ctx); err != nil {
			return nil, err
		}
		return f.describeTable(ctx, r, h)
	case *btapb.GetAppProfileRequest:
		if err := f.Faults.admitSetting(ctx); err != nil {
			return nil, err
		}
		return f.Faults.describeProfile(r.Name), nil
	}
	f.writes.Add(1)
	switch r := req.(type) {
	case *btapb.CreateTableRequest:
		return f.createTable(ctx, r, h)
	case *btapb.ModifyColumnFamiliesRequest:
		return f.modifyFamilies(ctx, r, h)
	case *btapb.DeleteTableRequest:
		res, err := h(ctx, req)
		if err == nil {
			f.mu.Lock()
			delete(f.tables, r.Name)
			f.mu.Unlock()
		}
		return res, err
	case *btapb.DropRowRangeRequest:
		t, err := f.tableOf(r.Name)
		if err != nil {
			return nil, err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
	}
	return h(ctx, req)
}

// createTable checks the table and its families, and creates it in the emulator without their
// rules.
func (f *Front) createTable(ctx context.Context, r *btapb.CreateTableRequest, h grpc.UnaryHandler) (any, error) {
	if !tableName.MatchString(r.TableId) {
		return nil, invalidArgument("Invalid id for collection tables: %q", r.TableId)
	}
	t := &table{families: map[string]*btapb.Type{}, rules: map[string]*btapb.GcRule{}}
	for name, cf := range r.GetTable().GetColumnFamilies() {
		if err := checkFamily(name, cf.GetGcRule()); err != nil {
			return nil, err
		}
		t.recordFamily(name, cf)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	res, err := h(ctx, r)
	if err != nil {
		return nil, err
	}
	full := res.(*btapb.Table)
	f.tables[full.Name] = t
	return t.show(full), nil
}

// checkFamily checks a family's id and rule against the service's limits.
func checkFamily(name string, rule *btapb.GcRule) error {
	if !familyName.MatchString(name) {
		return invalidArgument("Invalid id for collection columnFamilies: %q", name)
	}
	if n := proto.Size(rule); n > maxRule {
		return invalidArgument("Garbage collection rule of %d bytes is larger than the limit of %d", n, maxRule)
	}
	return nil
}

// recordFamily records a family, and removes its rule from the message that goes to the emulator.
func (t *table) recordFamily(name string, cf *btapb.ColumnFamily) {
	t.families[name], t.rules[name] = cf.GetValueType(), cf.GetGcRule()
	if cf != nil {
		cf.GcRule = nil
	}
}

// show returns a copy of the emulator's description of a table, with the rules.
func (t *table) show(from *btapb.Table) *btapb.Table {
	out := proto.Clone(from).(*btapb.Table)
	for name, cf := range out.ColumnFamilies {
		cf.GcRule = t.rules[name]
	}
	return out
}

// describeTable returns the emulator's description of a table, with the rules. No schema change
// runs meanwhile: the emulator reads its families without its lock.
func (f *Front) describeTable(ctx context.Context, r *btapb.GetTableRequest, h grpc.UnaryHandler) (any, error) {
	t, err := f.tableOf(r.Name)
	if err != nil {
		return h(ctx, r)
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	res, err := h(ctx, r)
	if err != nil {
		return nil, err
	}
	out := t.show(res.(*btapb.Table))
	f.Faults.misreport(out)
	return out, nil
}

// modifyFamilies applies all modifications or none.
func (f *Front) modifyFamilies(ctx context.Context, r *btapb.ModifyColumnFamiliesRequest, h grpc.UnaryHandler) (any,
	error) {
	t, err := f.tableOf(r.Name)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	next := &table{families: maps.Clone(t.families), rules: maps.Clone(t.rules)}
	for _, m := range r.Modifications {
		if err := f.Faults.refuseRelaxed(m, t.rules[m.Id], r.IgnoreWarnings); err != nil {
			return nil, err
		}
		if err := next.modify(m); err != nil {
			return nil, err
		}
	}
	res, err := h(ctx, r)
	if err != nil {
		return nil, err
	}
	t.families, t.rules = next.families, next.rules
	return t.show(res.(*btapb.Table)), nil
}

// refuseRelaxed refuses a longer age where the instance is replicated and a family's rule is an age
// alone: one of the clusters may have collected what another one still has. The text is the
// service's: https://github.com/googleapis/google-cloud-ruby/issues/10829
func (x *Faults) refuseRelaxed(
	m *btapb.ModifyColumnFamiliesRequest_Modification, was *btapb.GcRule, ignoreWarnings bool,
) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.replicas || ignoreWarnings || was.GetMaxAge() == nil || m.GetUpdate() == nil {
		return nil
	}
	if age := m.GetUpdate().GetGcRule().GetMaxAge(); age != nil && age.AsDuration() <= was.GetMaxAge().AsDuration() {
		return nil
	}
	return status.Errorf(codes.FailedPrecondition, "Cannot relax pure age-based GC for a replicated family (%s). "+
		"If you must relax the age constraint, unreplicate the instance and try again.", m.Id)
}

// modify applies one modification to the front's view of a table.
func (t *table) modify(m *btapb.ModifyColumnFamiliesRequest_Modification) error {
	was, have := t.families[m.Id]
	switch {
	case m.GetCreate() != nil:
		if have {
			return status.Errorf(codes.AlreadyExists, "Column family already exists: %s", m.Id)
		}
		if err := checkFamily(m.Id, m.GetCreate().GetGcRule()); err != nil {
			return err
		}
		t.recordFamily(m.Id, m.GetCreate())
	case !have:
		return status.Errorf(codes.NotFound, "Column family not found: %s", m.Id)
	case m.GetDrop():
		delete(t.families, m.Id)
		delete(t.rules, m.Id)
	case m.GetUpdate() != nil:
		if err := checkFamily(m.Id, m.GetUpdate().GetGcRule()); err != nil {
			return err
		}
		if paths := m.GetUpdateMask().GetPaths(); len(paths) > 0 && !strings.Contains(strings.Join(paths, ","), "gc_rule") {
			return nil
		}
		t.recordFamily(m.Id, m.GetUpdate())
		t.families[m.Id] = was // the type of a family cannot change
	}
	return nil
}
