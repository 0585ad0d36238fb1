package bigtable

import (
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func (f *Front) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
	if f.own(ctx) {
		return h(ctx, req)
	}
	gate := f.Faults.gate(ctx)
	if status.Code(gate) == codes.Unavailable {
		return nil, gate
	}
	write, err := f.checkUnary(req)
	if err != nil {
		return nil, err
	}
	if write == nil {
		if gate != nil {
			return nil, gate
		}
		return f.schema(ctx, req, h)
	}
	return f.write(ctx, gate, write, func(ctx context.Context) (any, error) { return h(ctx, req) })
}

// target is what a single-row write is about.
type target struct {
	table     string
	key       []byte
	mutations [][]*btpb.Mutation // branches
	rules     int                // of a ReadModifyWriteRow
	filter    *btpb.RowFilter
}

// checkUnary returns the target of a single-row write, nil for any other call.
func (f *Front) checkUnary(req any) (*target, error) {
	switch r := req.(type) {
	case *btpb.MutateRowRequest:
		return &target{table: r.TableName, key: r.RowKey, mutations: [][]*btpb.Mutation{r.Mutations}}, nil
	case *btpb.CheckAndMutateRowRequest:
		w := &target{table: r.TableName, key: r.RowKey, filter: r.PredicateFilter}
		for _, branch := range [][]*btpb.Mutation{r.TrueMutations, r.FalseMutations} {
			if len(branch) > 0 {
				w.mutations = append(w.mutations, branch)
			}
		}
		if len(w.mutations) == 0 {
			return nil, bad("No mutations provided")
		}
		return w, f.Faults.profile(r.AppProfileId)
	case *btpb.ReadModifyWriteRowRequest:
		w := &target{table: r.TableName, key: r.RowKey, rules: len(r.Rules)}
		return w, f.Faults.profile(r.AppProfileId)
	}
	return nil, nil
}

// cells returns how many cells the write sets, at most.
func (w *target) cells() int {
	most := w.rules
	for _, branch := range w.mutations {
		most = max(most, cellsSet(branch))
	}
	return most
}

// check holds a write to the service's limits. The caller holds the table's lock.
func (w *target) check(t *table) error {
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

// write applies a single-row write, unless fate has other plans. gate is not nil when
// the caller gave up while the call was on its way: it is applied all the same.
func (f *Front) write(ctx context.Context, gate error, w *target, apply func(context.Context) (any, error)) (any, error) {
	t, err := f.tableOf(w.table)
	if err != nil {
		return nil, err
	}
	if err := f.Faults.row(w.key); err != nil {
		return nil, err
	}
	run := func(ctx context.Context) (any, error) {
		f.writes.Add(1)
		wide := t.widths.mayPass(w.key, w.cells())
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
	switch f.Faults.fate() {
	case Refuse:
		return nil, f.Faults.injected("refused before it was applied")
	case Late:
		f.Faults.later(func(ctx context.Context) { _, _ = run(ctx) })
		return nil, f.Faults.injected("failed, to be applied late")
	case Ambiguous:
		if _, err := run(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
		return nil, f.Faults.injected("failed after it was applied")
	}
	res, err := run(context.WithoutCancel(ctx))
	if gate != nil {
		return nil, gate
	}
	return res, err
}

func (f *Front) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
	if f.own(ss.Context()) {
		return h(srv, ss)
	}
	switch info.FullMethod {
	case btpb.Bigtable_MutateRows_FullMethodName:
		return f.mutateRows(srv, ss, h)
	case btpb.Bigtable_ReadRows_FullMethodName:
		return f.readRows(srv, ss, h)
	case btpb.Bigtable_ReadChangeStream_FullMethodName, btpb.Bigtable_GenerateInitialChangeStreamPartitions_FullMethodName:
		return status.Error(codes.Unimplemented, "sandbox: change streams are not supported") // the emulator dies of it
	}
	if err := f.Faults.gate(ss.Context()); err != nil {
		return err
	}
	return h(srv, ss)
}

// readRows lets the emulator read while nobody writes, keeps the reply, and sends it
// when the table is free again: a slow reader stops no writer.
func (f *Front) readRows(srv any, ss grpc.ServerStream, h grpc.StreamHandler) error {
	if err := f.Faults.gate(ss.Context()); err != nil {
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

// replay gives a handler a request that was already received, and keeps its replies.
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

// RecvMsg hands the request over without copying what it points to.
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
