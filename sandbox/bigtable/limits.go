package bigtable

import (
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// The service's hard limits, in bytes unless said otherwise. The emulator enforces none of them.
const (
	maxKey       = 4 << 10
	maxQualifier = 16 << 10
	maxCell      = 100 << 20
	maxMutations = 100_000 // mutations per call
	maxRowSet    = 512 << 10
	maxFilter    = 20 << 10
	maxDepth     = 20 // levels of a filter
)

// invalidArgument returns an INVALID_ARGUMENT error.
func invalidArgument(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func checkKey(key []byte) error {
	switch {
	case len(key) == 0:
		return invalidArgument("Row keys must be non-empty")
	case len(key) > maxKey:
		return invalidArgument("Row key of %d bytes is larger than the limit of %d", len(key), maxKey)
	}
	return nil
}

// checkMutations checks all mutations of an entry before any of them is applied, which makes
// entries atomic. families are the table's.
func checkMutations(ms []*btpb.Mutation, families map[string]*btapb.Type) error {
	if len(ms) == 0 {
		return invalidArgument("No mutations provided")
	}
	if len(ms) > maxMutations {
		return invalidArgument("Too many mutations: %d, the limit is %d", len(ms), maxMutations)
	}
	for i, m := range ms {
		if err := checkMutation(m, families); err != nil {
			st := status.Convert(err)
			return status.Errorf(st.Code(), "Error in mutation #%d: %s", i, st.Message())
		}
	}
	return nil
}

// checkMutation checks one mutation.
func checkMutation(m *btpb.Mutation, families map[string]*btapb.Type) error {
	switch x := m.Mutation.(type) {
	case *btpb.Mutation_SetCell_:
		return checkSet(x.SetCell, families)
	case *btpb.Mutation_DeleteFromColumn_:
		d := x.DeleteFromColumn
		if err := checkColumn(d.FamilyName, d.ColumnQualifier, families); err != nil {
			return err
		}
		return checkRange(d.TimeRange)
	case *btpb.Mutation_DeleteFromFamily_:
		return checkColumn(x.DeleteFromFamily.FamilyName, nil, families)
	case *btpb.Mutation_DeleteFromRow_:
		return nil
	case *btpb.Mutation_AddToCell_:
		return checkMerge(x.AddToCell.FamilyName, x.AddToCell.ColumnQualifier, families)
	case *btpb.Mutation_MergeToCell_:
		return checkMerge(x.MergeToCell.FamilyName, x.MergeToCell.ColumnQualifier, families)
	}
	return invalidArgument("Mutation is not set")
}

// checkSet checks a SetCell.
func checkSet(set *btpb.Mutation_SetCell, families map[string]*btapb.Type) error {
	if err := checkColumn(set.FamilyName, set.ColumnQualifier, families); err != nil {
		return err
	}
	if families[set.FamilyName].GetAggregateType() != nil {
		return invalidArgument("SetCell is not supported in aggregate family %q", set.FamilyName)
	}
	if ts := set.TimestampMicros; ts != -1 && (ts < 0 || ts%1000 != 0) {
		return invalidArgument(
			"Timestamp granularity mismatch. Expected a multiple of 1000 (millisecond granularity), but got %d.", ts)
	}
	if n := len(set.Value); n > maxCell {
		return invalidArgument("Cell of %d bytes is larger than the limit of %d", n, maxCell)
	}
	return nil
}

// checkMerge checks an addition to an aggregate cell.
func checkMerge(family string, qualifier *btpb.Value, families map[string]*btapb.Type) error {
	if err := checkColumn(family, qualifier.GetRawValue(), families); err != nil {
		return err
	}
	if families[family].GetAggregateType() == nil {
		return invalidArgument("Family %q is not an aggregate: nothing can be added to its cells", family)
	}
	return nil
}

// checkColumn checks that a family exists and that a qualifier is not too long.
func checkColumn(family string, qualifier []byte, families map[string]*btapb.Type) error {
	if _, ok := families[family]; !ok {
		return status.Errorf(codes.NotFound, "Requested column family not found: %q", family)
	}
	if n := len(qualifier); n > maxQualifier {
		return invalidArgument("Column qualifier of %d bytes is larger than the limit of %d", n, maxQualifier)
	}
	return nil
}

// checkRange checks the time range of a delete.
func checkRange(r *btpb.TimestampRange) error {
	if r == nil {
		return nil
	}
	from, to := r.StartTimestampMicros, r.EndTimestampMicros
	switch {
	case from < 0 || to < 0 || from%1000 != 0 || to%1000 != 0:
		return invalidArgument("Timestamp granularity mismatch in range [%d, %d).", from, to)
	case to != 0 && to <= from:
		return invalidArgument("Inverted or empty timestamp range [%d, %d).", from, to)
	}
	return nil
}

// checkFilter checks a filter against the service's limits of size and depth.
func checkFilter(f *btpb.RowFilter) error {
	if f == nil {
		return nil
	}
	if n := proto.Size(f); n > maxFilter {
		return invalidArgument("Filter of %d bytes is larger than the limit of %d", n, maxFilter)
	}
	if depth(f) > maxDepth {
		return invalidArgument("Filter is nested deeper than %d", maxDepth)
	}
	return nil
}

// depth returns how many levels of filters are nested.
func depth(f *btpb.RowFilter) int {
	var inner []*btpb.RowFilter
	switch x := f.GetFilter().(type) {
	case *btpb.RowFilter_Chain_:
		inner = x.Chain.GetFilters()
	case *btpb.RowFilter_Interleave_:
		inner = x.Interleave.GetFilters()
	case *btpb.RowFilter_Condition_:
		inner = []*btpb.RowFilter{x.Condition.PredicateFilter, x.Condition.TrueFilter, x.Condition.FalseFilter}
	}
	deepest := 0
	for _, g := range inner {
		deepest = max(deepest, depth(g))
	}
	return deepest + 1
}

// checkRead checks a read against the service's limits.
func checkRead(r *btpb.ReadRowsRequest) error {
	if n := proto.Size(r.GetRows()); n > maxRowSet {
		return invalidArgument("Row set of %d bytes is larger than the limit of %d", n, maxRowSet)
	}
	return checkFilter(r.GetFilter())
}
