package bigtable

import (
	"context"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	statpb "google.golang.org/genproto/googleapis/rpc/status"
)

// bulk is one MutateRows call on its way through the front.
type bulk struct {
	front *Front
	table *table
	req   *btpb.MutateRowsRequest
	apply func(context.Context, *btpb.MutateRowsRequest) ([]*btpb.MutateRowsResponse_Entry, error)

	wide     bool           // some row may exceed maxWidth, so the table's lock is held exclusively
	admitted map[string]int // row key → cells that the entries admitted so far set
}

// mutateRows answers a MutateRows call.
func (f *Front) mutateRows(srv any, ss grpc.ServerStream, h grpc.StreamHandler) error {
	gaveUp := f.Faults.admit(ss.Context())
	if status.Code(gaveUp) == codes.Unavailable {
		return gaveUp
	}
	req := &btpb.MutateRowsRequest{}
	if err := ss.RecvMsg(req); err != nil {
		return err
	}
	t, err := f.tableOf(req.TableName)
	if err != nil {
		return err
	}
	if err := checkBulk(req); err != nil {
		return err
	}
	b := &bulk{front: f, table: t, req: req, apply: emulatorApply(srv, ss, h)}
	return b.serve(ss, gaveUp)
}

// checkBulk checks a call as a whole against the service's limits.
func checkBulk(req *btpb.MutateRowsRequest) error {
	if len(req.Entries) == 0 {
		return invalidArgument("No mutations provided")
	}
	total := 0
	for _, e := range req.Entries {
		total += len(e.Mutations)
	}
	if total > maxMutations {
		return invalidArgument("Too many mutations: %d, the limit is %d", total, maxMutations)
	}
	return nil
}

// emulatorApply returns a function that applies a request in the emulator and returns its answer
// for each entry.
func emulatorApply(srv any, ss grpc.ServerStream, h grpc.StreamHandler) func(context.Context,
	*btpb.MutateRowsRequest) ([]*btpb.MutateRowsResponse_Entry, error) {
	return func(ctx context.Context, req *btpb.MutateRowsRequest) ([]*btpb.MutateRowsResponse_Entry, error) {
		kept := &replay{ServerStream: ss, ctx: ctx, req: req}
		if err := h(srv, kept); err != nil {
			return nil, err
		}
		var entries []*btpb.MutateRowsResponse_Entry
		for _, m := range kept.sent {
			entries = append(entries, m.(*btpb.MutateRowsResponse).Entries...)
		}
		return entries, nil
	}
}

// serve draws the call's fault, applies its entries and sends the reply. gaveUp is not nil when the
// caller gave up during an injected latency: the entries are applied all the same.
func (b *bulk) serve(ss grpc.ServerStream, gaveUp error) error {
	x := b.front.Faults
	kind := x.draw()
	switch kind {
	case Refuse:
		return x.injected("refused before it was applied")
	case Late:
		x.applyLate(func(ctx context.Context) { _, _ = b.run(ctx) })
		return x.injected("failed, to be applied late")
	}
	out, err := b.run(context.WithoutCancel(ss.Context()))
	switch {
	case err != nil:
		return err
	case kind == Ambiguous:
		return x.injected("failed after it was applied")
	case gaveUp != nil:
		return gaveUp
	}
	return b.send(ss, out)
}

// run applies the entries that pass the checks, in any order, and returns the answer for each
// entry.
func (b *bulk) run(ctx context.Context) ([]*btpb.MutateRowsResponse_Entry, error) {
	b.front.writes.Add(1)
	branches := make([][]*btpb.Mutation, len(b.req.Entries))
	for i, e := range b.req.Entries {
		branches[i] = e.Mutations
	}
	b.wide = b.mayExceed()
	defer b.table.lock(b.wide, branches...)()
	var out []*btpb.MutateRowsResponse_Entry
	var at []int // for each entry that is applied: its index in the request
	pass := &btpb.MutateRowsRequest{TableName: b.req.TableName, AppProfileId: b.req.AppProfileId}
	for i, e := range b.req.Entries {
		if err := b.check(ctx, e); err != nil {
			out = append(out, answerOf(i, err))
			continue
		}
		at, pass.Entries = append(at, i), append(pass.Entries, e)
	}
	if len(at) == 0 {
		return out, nil
	}
	b.shuffle(pass.Entries, at)
	applied, err := b.applyEntries(ctx, pass)
	if err != nil {
		return nil, err
	}
	for _, e := range applied {
		e.Index = int64(at[e.Index])
		out = append(out, e)
	}
	return b.distortAnswers(out), nil
}

// applyEntries applies a request: in one call, or entry by entry when an entry merges into a cell
// that an earlier one may set.
func (b *bulk) applyEntries(ctx context.Context, req *btpb.MutateRowsRequest) (out []*btpb.MutateRowsResponse_Entry,
	err error) {
	if !slices.ContainsFunc(req.Entries,
		func(e *btpb.MutateRowsRequest_Entry) bool { return b.table.merges(e.Mutations) }) {
		return b.apply(ctx, req)
	}
	for i, e := range req.Entries {
		if err := b.front.merge(ctx, req.TableName, b.table, e.RowKey, e.Mutations); err != nil {
			return nil, err
		}
		one, err := b.apply(ctx, &btpb.MutateRowsRequest{TableName: req.TableName, AppProfileId: req.AppProfileId,
			Entries: req.Entries[i : i+1]})
		if err != nil {
			return nil, err
		}
		for _, answer := range one {
			answer.Index = int64(i)
			out = append(out, answer)
		}
	}
	return out, nil
}

// mayExceed reports whether this call could make a row wider than maxWidth.
func (b *bulk) mayExceed() bool {
	cells := map[string]int{}
	for _, e := range b.req.Entries {
		cells[string(e.RowKey)] += cellsSet(e.Mutations)
		if b.table.widths.mayExceed(e.RowKey, cells[string(e.RowKey)]) {
			return true
		}
	}
	return false
}

// checkWidth refuses an entry that would make its row too wide after the entries before it.
func (b *bulk) checkWidth(ctx context.Context, e *btpb.MutateRowsRequest_Entry) error {
	cells, key := cellsSet(e.Mutations), string(e.RowKey)
	if b.wide && b.table.widths.mayExceed(e.RowKey, cells) {
		if err := b.front.checkWidth(ctx, b.req.TableName, b.table, e.RowKey, b.admitted[key], e.Mutations); err != nil {
			return err
		}
	}
	if b.admitted == nil {
		b.admitted = map[string]int{}
	}
	b.admitted[key] += cells
	b.table.widths.add(e.RowKey, cells)
	return nil
}

// check checks one entry against the limits and the faults in force.
func (b *bulk) check(ctx context.Context, e *btpb.MutateRowsRequest_Entry) error {
	if err := checkKey(e.RowKey); err != nil {
		return err
	}
	if err := checkMutations(e.Mutations, b.table.families); err != nil {
		return err
	}
	x := b.front.Faults
	if err := x.refuseRow(e.RowKey); err != nil {
		return err
	}
	if b.front.chance(x.currentOdds().EntryRefuse) {
		return x.injected("entry refused before it was applied")
	}
	return b.checkWidth(ctx, e)
}

// answerOf returns the answer for entry i: the status of an error.
func answerOf(i int, err error) *btpb.MutateRowsResponse_Entry {
	st := status.Convert(err)
	return &btpb.MutateRowsResponse_Entry{Index: int64(i), Status: &statpb.Status{Code: int32(st.Code()),
		Message: st.Message()}}
}

// shuffle reorders entries and their indexes: the service applies entries in any order, also those
// of one row.
func (b *bulk) shuffle(es []*btpb.MutateRowsRequest_Entry, at []int) {
	if b.front.Faults.ordered() {
		return
	}
	b.front.shuffle(len(es), func(i, j int) {
		es[i], es[j] = es[j], es[i]
		at[i], at[j] = at[j], at[i]
	})
}

// distortAnswers drops the answers of some applied entries and turns others into errors, by the
// odds in force.
func (b *bulk) distortAnswers(out []*btpb.MutateRowsResponse_Entry) []*btpb.MutateRowsResponse_Entry {
	odds, kept := b.front.Faults.currentOdds(), out[:0]
	for _, e := range out {
		if e.Status.GetCode() == 0 {
			if b.front.chance(odds.Missing) {
				continue
			}
			if b.front.chance(odds.EntryAmbiguous) {
				e = answerOf(int(e.Index), b.front.Faults.injected("entry failed after it was applied"))
			}
		}
		kept = append(kept, e)
	}
	return kept
}

// send sends the reply in two messages where it can, as the service may.
func (b *bulk) send(ss grpc.ServerStream, out []*btpb.MutateRowsResponse_Entry) error {
	cut := 0
	if len(out) > 1 {
		cut = b.front.randomBelow(len(out))
	}
	if cut > 0 {
		if err := ss.SendMsg(&btpb.MutateRowsResponse{Entries: out[:cut]}); err != nil {
			return err
		}
	}
	return ss.SendMsg(&btpb.MutateRowsResponse{Entries: out[cut:]})
}
