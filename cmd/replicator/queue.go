package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/wire"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

func (a *app) queueCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "queue", Short: "Look into the logs", Args: a.args(cobra.NoArgs)}
	cmd.AddCommand(a.queueDumpCommand(), a.queueEnvCommand())
	return cmd
}

// dumpOptions are the flags of queue dump.
type dumpOptions struct {
	table, shard, from, key string
	limit                   int
	showData                bool
}

func (a *app) queueDumpCommand() *cobra.Command {
	var o dumpOptions
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Print what the logs hold, one JSON object per line",
		Long: `dump prints one line per change, and one per other entry (claim, start, graph, beat, marks, gap, control, snapshot):
what was there when it began. Keys and items are printed only with --show-data.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error { return a.dump(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.table, "table", "", "only this source table")
	f.StringVar(&o.shard, "shard", "", "only changes of this shard")
	f.StringVar(&o.from, "from", "", "first entry: a sequence number, or a time (RFC 3339)")
	f.IntVar(&o.limit, "limit", 0, "at most so many lines per table (default: all)")
	f.StringVar(&o.key, "key", "", `only changes of the item with this key: {"pk":{"S":"hats"},"sk":{"S":"fedora"}}`)
	f.BoolVar(&o.showData, "show-data", false, "print keys and images")
	return cmd
}

func (a *app) dump(ctx context.Context, o dumpOptions) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	tables, err := catalog.Select(cfg, o.table)
	if err != nil {
		return err
	}
	hashes, err := keyHashes(o.key)
	if err != nil {
		return err
	}
	clients := a.clients(cfg)
	defer clients.Close()
	q, err := clients.Queue(ctx)
	if err != nil {
		return err
	}
	for _, t := range tables {
		log, err := q.Log(ctx, t.Source)
		if errors.Is(err, queue.ErrNoLog) && o.table == "" {
			continue
		}
		if err != nil {
			return exit.Environment(fmt.Errorf("open log of %s: %w", t.Source, err), "see `replicator check`")
		}
		d := &dumper{a: a, o: o, log: log, hashes: hashes}
		if err := d.run(ctx); err != nil && !errors.Is(err, errEnough) {
			return fmt.Errorf("dump log of %s: %w", t.Source, err)
		}
	}
	return nil
}

var errEnough = errors.New("limit reached")

// dumper prints the log of one table.
type dumper struct {
	a      *app
	o      dumpOptions
	log    *queue.Log
	hashes map[uint64]bool // nil: all items
	owner  string
	lines  int
}

// dumpLine is one line: a change, or an entry without changes.
type dumpLine struct {
	Schema  int             `json:"schema"`
	Seq     uint64          `json:"seq"`
	Table   string          `json:"table"`
	Kind    string          `json:"kind"`
	Owner   string          `json:"owner,omitempty"`
	Epoch   uint64          `json:"epoch"`
	Shard   string          `json:"shard,omitempty"`
	Version int64           `json:"version,omitempty"`
	Op      string          `json:"op,omitempty"`
	TTL     bool            `json:"ttl,omitempty"`
	KeyHash string          `json:"key_hash,omitempty"`
	Bytes   int             `json:"bytes"`
	Body    any             `json:"body,omitempty"`
	Keys    json.RawMessage `json:"keys,omitempty"`
	New     json.RawMessage `json:"new,omitempty"`
	Old     json.RawMessage `json:"old,omitempty"`
}

func (d *dumper) run(ctx context.Context) error {
	info, err := d.log.Info(ctx)
	if err != nil {
		return err
	}
	from, err := d.first(ctx)
	if err != nil || from > info.Last {
		return err
	}
	state, err := d.log.Fold(ctx)
	if err != nil {
		return err
	}
	d.owner = state.Owner // of older entries too, until a claim says otherwise: epochs tell them apart
	r, err := d.log.Read(ctx, from, checkpoint.Hash{})
	if err != nil {
		return err
	}
	defer r.Close(context.WithoutCancel(ctx))
	r.EndAt(info.Last)
	for buf := []byte(nil); ; {
		seq, e, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if buf, err = d.entry(seq, e, state.Epoch, buf); err != nil {
			return err
		}
	}
}

// first is the sequence that --from means; 0 is the oldest.
func (d *dumper) first(ctx context.Context) (uint64, error) {
	if d.o.from == "" {
		return 0, nil
	}
	if seq, err := strconv.ParseUint(d.o.from, 10, 64); err == nil {
		return seq, nil
	}
	at, err := time.Parse(time.RFC3339, d.o.from)
	if err != nil {
		return 0, exit.Usage("for example 1234 or 2026-11-21T14:00:00Z", "--from %q is neither a sequence number nor a time", d.o.from)
	}
	return d.log.SeqAt(ctx, at)
}

func (d *dumper) entry(seq uint64, e *checkpoint.Entry, newest uint64, buf []byte) ([]byte, error) {
	line := dumpLine{Schema: schema, Seq: seq, Table: d.log.Table(), Epoch: e.Epoch, Kind: e.Kind.String(), Bytes: len(e.Data)}
	if claim, ok := e.Body.(*checkpoint.Claim); ok {
		d.owner, newest = claim.Owner, e.Epoch
	}
	if e.Epoch == newest {
		line.Owner = d.owner
	}
	body, ok := e.Body.(*checkpoint.Frame)
	if !ok {
		if d.hashes != nil || d.o.shard != "" {
			return buf, nil
		}
		line.Body = e.Body
		return buf, d.print(line)
	}
	line.Kind = "change"
	if len(body.Pages) > 0 && records(body) == 0 && d.hashes == nil && d.o.shard == "" {
		line.Kind, line.Body = "frame", body
		return buf, d.print(line)
	}
	return frame.Unpack(e, buf, func(_ *checkpoint.PageHead, c *change.Change) error { return d.change(line, c) })
}

func records(f *checkpoint.Frame) (n int) {
	for _, p := range f.Pages {
		n += p.Records
	}
	return n
}

func (d *dumper) change(line dumpLine, c *change.Change) error {
	if d.o.shard != "" && c.Feed.Shard != d.o.shard || d.hashes != nil && !d.hashes[c.KeyHash] {
		return nil
	}
	line.Shard, line.Version, line.Op, line.TTL = c.Feed.Shard, c.Version, c.Op.String(), c.TTL
	line.KeyHash, line.Bytes = hashText(c.KeyHash), len(c.Raw)
	if d.o.showData {
		line.Keys, line.New, line.Old = bytes.Clone(c.Keys), bytes.Clone(c.New), bytes.Clone(c.Old)
	}
	return d.print(line)
}

func (d *dumper) print(line dumpLine) error {
	if d.lines++; d.o.limit > 0 && d.lines > d.o.limit {
		return errEnough
	}
	return d.a.printJSON(line)
}

// hashText writes a key's hash as the commands show it.
func hashText(h uint64) string { return fmt.Sprintf("%016x", h) }

// keyHashes returns the hashes that the item with this key may have. The order of the two attributes is the schema's,
// which the log does not say: both are tried.
func keyHashes(key string) (map[uint64]bool, error) {
	if key == "" {
		return nil, nil
	}
	bad := func(err error) (map[uint64]bool, error) {
		return nil, exit.Usage(`for example {"pk":{"S":"hats"},"sk":{"N":"1"}}`, "read --key: %w", err)
	}
	var d change.Decoder
	img, err := d.Image([]byte(key))
	if err != nil {
		return bad(err)
	}
	var attrs []change.KeyAttr
	for _, a := range img {
		attrs = append(attrs, change.KeyAttr{Name: a.Name, Type: a.Value.Kind.String()[0]})
	}
	var schemas []change.KeySchema
	switch len(attrs) {
	case 1:
		schemas = []change.KeySchema{{Partition: attrs[0]}}
	case 2:
		schemas = []change.KeySchema{{Partition: attrs[0], Sort: &attrs[1]}, {Partition: attrs[1], Sort: &attrs[0]}}
	default:
		return bad(fmt.Errorf("a key has one or two attributes, not %d", len(attrs)))
	}
	hashes := map[uint64]bool{}
	for _, s := range schemas {
		canonical, err := s.Canonical(nil, img)
		if err != nil {
			return bad(err)
		}
		hashes[change.HashKey(canonical)] = true
	}
	return hashes, nil
}

func (a *app) queueEnvCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print shell variables with which the nats tool reaches the logs",
		Long:  `eval "$(replicator queue env)" lets the nats tool talk to a running daemon's embedded server. The token opens everything.`,
		Args:  a.args(cobra.NoArgs),
		RunE: a.body(func(context.Context, []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			address, err := wire.QueueURL(cfg)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"schema": schema, "NATS_URL": address, "NATS_CREDS": cfg.Queue.Creds})
			}
			a.print("export NATS_URL=%s", shellQuote(address))
			if cfg.Queue.Creds != "" {
				a.print("export NATS_CREDS=%s", shellQuote(cfg.Queue.Creds))
			}
			return nil
		}),
	}
}
