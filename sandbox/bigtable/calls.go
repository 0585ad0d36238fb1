package bigtable

import (
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// unary is the interceptor of calls with one reply: single-row writes and admin calls.
func (f *Front) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
	if f.isOwnCall(ctx) {
		return h(ctx, req)
	}
	gaveUp := f.Faults.admit(ctx)
	if status.Code(gaveUp) == codes.Unavailable {
		return nil, gaveUp
	}
	write, err := f.checkUnary(req)
	if err != nil {
		return nil, err
	}
	if write == nil {
		if gaveUp != nil {
			return nil, gaveUp
		}
		return f.schema(ctx, req, h)
	}
	return f.write(ctx, gaveUp, write, func(ctx context.Context) (any, error) { return h(ctx, req) })
}

// rowWrite is a call that writes one row.
type rowWrite struct {
	table     string
	key       []byte
	mutations [][]*btpb.Mutation // the branches, of which one is applied
	rules     int                // how many rules a ReadModifyWriteRow has
	filter    *btpb.RowFilter    // the condition of a CheckAndMutateRow
}

// checkUnary returns the single-row write that a request is, nil for any other request.
func (f *Front) checkUnary(req any) (*rowWrite, error) {
	switch r := req.(type) {
	case *btpb.MutateRowRequest:
		return &rowWrite{table: r.TableName, key: r.RowKey, mutations: [][]*btpb.Mutation{r.Mutations}}, nil
	case *btpb.CheckAndMutateRowRequest:
		w := &rowWrite{table: r.TableName, key: r.RowKey, filter: r.PredicateFilter}
		for _, branch := range [][]*btpb.Mutation{r.TrueMutations, r.FalseMutations} {
			if len(branch) > 0 {
				w.mutations = append(w.mutations, branch)
			}
		}
		if len(w.mutations) == 0 {
			return nil, invalidArgument("No mutations provided")
		}
		return w, f.Faults.checkProfile(r.AppProfileId)
	case *btpb.ReadModifyWriteRowRequest:
		w := &rowWrite{table: r.TableName, key: r.RowKey, rules: len(r.Rules)}
		return w, f.Faults.checkProfile(r.AppProfileId)
	}
	return nil, nil
}

// cells returns the most cells that the write may set.
func (w *rowWrite) cells() int {
	most := w.rules
	for _, branch := range w.mutations {
		most = max(most, cellsSet(branch))
	}
	return most
}

// check checks a write against the service's limits. The caller holds the table's lock.
func (w *rowWrite) check(t *table) error {
	if err := checkKey(w.key); err != nil {
		return err
	}
	for _, branch := range w.mutations {
		if err := checkMutations(branch, t.families); err != nil {
			return err
		}
	}
	return checkFilter(w.filter)
}

// write applies a single-row write, unless a fault applies to it. gaveUp is not nil when the caller
// gave up during an injected latency: the write is applied all the same, as it may be in the
// service.
func (f *Front) write(ctx context.Context, gaveUp error, w *rowWrite, apply func(context.Context) (any, error)) (any,
	error) {
	t, err := f.tableOf(w.table)
	if err != nil {
		return nil, err
	}
	if err := f.Faults.refuseRow(w.key); err != nil {
		return nil, err
	}
	run := func(ctx context.Context) (any, error) {
		f.writes.Add(1)
		wide := t.widths.mayExceed(w.key, w.cells())
		defer t.lock(wide, w.mutations...)()
		if err := w.check(t); err != nil {
			return nil, err
		}
		if wide {
			if err := f.checkWidth(ctx, w.table, t, w.key, w.rules, w.mutations...); err != nil {
				return nil, err
			}
		}
		t.widths.add(w.key, w.cells())
		for _, branch := range w.mutations {
			if err := f.merge(ctx, w.table, t, w.key, branch); err != nil {
				return nil, err
			}
		}
		return apply(ctx)
	}
	switch f.Faults.draw() {
	case Refuse:
		return nil, f.Faults.injected("refused before it was applied")
	case Late:
		f.Faults.applyLate(func(ctx context.Context) { _, _ = run(ctx) })
		return nil, f.Faults.injected("failed, to be applied late")
	case Ambiguous:
		if _, err := run(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
		return nil, f.Faults.injected("failed after it was applied")
	}
	res, err := run(context.WithoutCancel(ctx))
	if gaveUp != nil {
		return nil, gaveUp
	}
	return res, err
}

// stream is the interceptor of calls with a stream of replies: reads and bulk writes.
func (f *Front) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
	if f.isOwnCall(ss.Context()) {
		return h(srv, ss)
	}
	switch info.FullMethod {
	case btpb.Bigtable_MutateRows_FullMethodName:
		return f.mutateRows(srv, ss, h)
	case btpb.Bigtable_ReadRows_FullMethodName:
		return f.readRows(srv, ss, h)
	case btpb.Bigtable_ReadChangeStream_FullMethodName, btpb.Bigtable_GenerateInitialChangeStreamPartitions_FullMethodName:
		return status.Error(codes.Unimplemented, "sandbox: change streams are not supported") // the emulator would exit
	}
	if err := f.Faults.admit(ss.Context()); err != nil {
		return err
	}
	return h(srv, ss)
}

// readRows reads from the emulator under the table's exclusive lock, buffers the reply, and sends
// it after the lock is released, so that a slow reader does not block writers.
func (f *Front) readRows(srv any, ss grpc.ServerStream, h grpc.StreamHandler) error {
	if err := f.Faults.admit(ss.Context()); err != nil {
		return err
	}
	req := &btpb.ReadRowsRequest{}
	if err := ss.RecvMsg(req); err != nil {
		return err
	}
	if err := checkRead(req); err != nil {
		return err
	}
	t, err := f.tableOf(req.TableName)
	if err != nil {
		return err
	}
	kept := &replay{ServerStream: ss, req: req}
	t.mu.Lock()
	err = h(srv, kept)
	t.mu.Unlock()
	for _, m := range kept.sent {
		if err := ss.SendMsg(m); err != nil {
			return err
		}
	}
	return err
}

// replay is a server stream that gives a handler a request that was already received, and keeps the
// handler's replies.
type replay struct {
	grpc.ServerStream
	ctx  context.Context // instead of the stream's, if set
	req  proto.Message
	sent []any
}

func (r *replay) Context() context.Context {
	if r.ctx != nil {
		return r.ctx
	}
	return r.ServerStream.Context()
}

func (r *replay) SendMsg(m any) error {
	r.sent = append(r.sent, m)
	return nil
}

// RecvMsg gives the handler the request, without a copy of its entries.
func (r *replay) RecvMsg(m any) error {
	switch to := m.(type) {
	case *btpb.MutateRowsRequest:
		from := r.req.(*btpb.MutateRowsRequest)
		to.TableName, to.AppProfileId, to.Entries = from.TableName, from.AppProfileId, from.Entries
	case proto.Message:
		proto.Merge(to, r.req)
	}
	return nil
}
