// Package journal keeps messages of a table in a stream of their own: in one order, from one writer
// at a time. What the messages mean is the business of its user; the archive of a table is one.
//
// Each append names the last message that its writer has seen, and the server refuses it if there
// is a later one: so a writer that another one has overtaken stores nothing. There is no other
// claim of the journal.
package journal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// Options name the stream of the journal of a table.
type Options struct {
	Pipeline    string
	Table       string
	What        string // for its description: "archive"
	Stream      string // its name
	Subject     string // prefix of its subjects
	Replicas    int
	MaxBytes    int64 // hard limit of the stream
	IdleCheck   time.Duration
	BytesRead   prometheus.Counter
	BytesStored prometheus.Gauge // may be nil
}

// The errors that callers distinguish.
var (
	// ErrOvertaken means that the journal does not end where the writer expects: read what is
	// stored.
	ErrOvertaken = errors.New("another writer has appended")
	// ErrFull means that the stream is at its limit: nothing was stored.
	ErrFull = conn.ErrFull
	// ErrGap means that messages are missing which were there, or which the reader requested.
	ErrGap = errors.New("messages are missing")
)

// Journal is the stream of a table. Its methods may be called by several goroutines; two appends at
// once are refused.
type Journal struct {
	conn   *conn.Conn
	opts   Options
	stream jetstream.Stream
}

// The subjects of a journal. Snapshots have one of their own, so that the newest is found without
// reading.
const (
	entries   = "e"
	snapshots = "snap"
)

// Open opens the journal of a table, and makes its stream the first time.
func Open(ctx context.Context, c *conn.Conn, o Options) (*Journal, error) {
	// Sequences start at the time in microseconds: a stream that is deleted and made again never
	// reuses numbers.
	cfg := jetstream.StreamConfig{
		Name: o.Stream, Subjects: []string{o.Subject + entries, o.Subject + snapshots},
		Description: "Tailrace: " + o.What + " of " + o.Table, Retention: jetstream.LimitsPolicy,
		Storage: jetstream.FileStorage, Replicas: o.Replicas, Discard: jetstream.DiscardNew, MaxBytes: o.MaxBytes,
		MaxMsgSize: int32(c.MaxMessage()), FirstSeq: uint64(time.Now().UnixMicro()), DenyDelete: true,
		AllowDirect: false, Duplicates: time.Second,
		Metadata: map[string]string{
			conn.MetaFormat: strconv.Itoa(conn.FormatNumber), conn.MetaPipeline: o.Pipeline, conn.MetaTable: o.Table,
		},
	}
	st, err := c.CreateStream(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open %s of %s: %w", o.What, o.Table, err)
	}
	return open(c, o, st)
}

// OpenExisting is Open for commands, which write nothing: nil without an error while there is no
// stream.
func OpenExisting(ctx context.Context, c *conn.Conn, o Options) (*Journal, error) {
	st, err := c.JS.Stream(ctx, o.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = c.ConfirmMissing(ctx, o.Stream)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open %s of %s: %w", o.What, o.Table, err)
	}
	return open(c, o, st)
}

func open(c *conn.Conn, o Options, st jetstream.Stream) (*Journal, error) {
	cfg := st.CachedInfo().Config
	if need, _ := strconv.Atoi(cfg.Metadata[conn.MetaFormat]); need > conn.FormatNumber {
		newer := &conn.FormatError{What: "stream " + cfg.Name, Need: need}
		return nil, fmt.Errorf("open %s of %s: %w", o.What, o.Table, newer)
	}
	if p := cfg.Metadata[conn.MetaPipeline]; p != o.Pipeline {
		return nil, fmt.Errorf("open %s of %s: stream %s belongs to pipeline %q", o.What, o.Table, cfg.Name, p)
	}
	return &Journal{conn: c, opts: o, stream: st}, nil
}

// Info is the leader's answer about a journal.
type Info struct {
	Created  time.Time // identifies the stream
	First    uint64    // sequence of the oldest message; Last + 1 when there is none
	Last     uint64    // sequence of the newest message ever
	Bytes    uint64
	MaxBytes uint64
}

// Fraction returns how much of the limit is in use.
func (i Info) Fraction() float64 {
	if i.MaxBytes == 0 {
		return 0
	}
	return float64(i.Bytes) / float64(i.MaxBytes)
}

// Info reads the state of the stream from its leader.
func (j *Journal) Info(ctx context.Context) (Info, error) {
	info, err := j.conn.StreamInfo(ctx, j.stream)
	j.conn.Report(ctx, err)
	if err != nil {
		return Info{}, j.wrap("look at", err)
	}
	i := Info{
		Created: info.Created, First: info.State.FirstSeq, Last: info.State.LastSeq, Bytes: info.State.Bytes,
		MaxBytes: uint64(max(info.Config.MaxBytes, 0)),
	}
	if info.State.Msgs == 0 {
		i.First = i.Last + 1
	}
	if limit := uint64(j.opts.MaxBytes); i.MaxBytes == 0 || limit < i.MaxBytes {
		i.MaxBytes = limit
	}
	if j.opts.BytesStored != nil {
		j.opts.BytesStored.Set(float64(i.Bytes))
	}
	return i, nil
}

// SetLimit sets the stream's limit to the limit of the options, not below what it holds.
func (j *Journal) SetLimit(ctx context.Context) error {
	ctx, cancel := j.conn.WithAckTimeout(ctx)
	defer cancel()
	info, err := j.stream.Info(ctx)
	if err != nil {
		return j.wrap("look at", err)
	}
	cfg := info.Config
	want := max(j.opts.MaxBytes, int64(info.State.Bytes)+1<<20)
	if cfg.MaxBytes == want {
		return nil
	}
	cfg.MaxBytes = want
	_, err = j.conn.JS.UpdateStream(ctx, cfg)
	return j.wrap("set the limit of", err)
}

// End is where a journal ended at the last read or append of its writer.
type End struct {
	Last uint64
	ID   string // of the newest message; "" unknown
}

// Append stores a message behind the end, and returns the new end. It returns only when the message
// is durable. Errors: ErrOvertaken, ErrFull; after any other the outcome is unknown, and the writer
// has to read what is stored.
//
// Rule 2: the server compares the sequence and, where one copy is kept, the id of the newest
// message: a store that was put back to an older copy and filled up again has the same number, but
// another id.
func (j *Journal) Append(ctx context.Context, at End, snapshot bool, data []byte) (End, error) {
	call, cancel := j.conn.WithAckTimeout(ctx)
	defer cancel()
	m := &nats.Msg{Subject: j.opts.Subject + entries, Data: data, Header: nats.Header{
		nats.ExpectedLastSeqHdr: {strconv.FormatUint(at.Last, 10)},
	}}
	if snapshot {
		m.Subject = j.opts.Subject + snapshots
	}
	var id string
	if j.opts.Replicas == 1 {
		if id = newID(); at.ID != "" {
			m.Header[nats.ExpectedLastMsgIdHdr] = []string{at.ID}
		}
		m.Header[nats.MsgIdHdr] = []string{id}
	}
	ack, err := j.conn.JS.PublishMsg(call, m, jetstream.WithRetryAttempts(0))
	j.conn.Report(ctx, err)
	switch conn.OutcomeOf(err) {
	case conn.Stored:
	case conn.Fenced:
		return at, j.wrap("append to", fmt.Errorf("%w: %w", ErrOvertaken, err))
	case conn.Full:
		return at, j.wrap("append to", fmt.Errorf("%w: %w", ErrFull, err))
	default:
		return at, j.wrap("append to", err)
	}
	if ack.Sequence != at.Last+1 || ack.Duplicate {
		return at, j.wrap("append to", fmt.Errorf("stored at %d in place of %d (duplicate: %v)",
			ack.Sequence, at.Last+1, ack.Duplicate))
	}
	return End{Last: ack.Sequence, ID: id}, nil
}

// newID returns an id that no other attempt uses.
func newID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// Name returns the name of the stream.
func (j *Journal) Name() string { return j.opts.Stream }

// MaxMessage returns the size of the largest message that the server takes.
func (j *Journal) MaxMessage() int { return j.conn.MaxMessage() }

// Newest returns the newest snapshot: jetstream.ErrMsgNotFound is nil without an error.
func (j *Journal) Newest(ctx context.Context) (seq uint64, data []byte, err error) {
	m, err := j.conn.GetMessage(ctx, j.opts.Stream, conn.MessageRequest{LastFor: j.opts.Subject + snapshots})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, j.wrap("find the snapshot of", err)
	}
	return m.Sequence, m.Data, nil
}

// At returns the message at a sequence, as the leader has it; ErrGap when it is not there.
func (j *Journal) At(ctx context.Context, seq uint64) (data []byte, id string, err error) {
	m, err := j.conn.GetMessage(ctx, j.opts.Stream, conn.MessageRequest{Seq: seq})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		err = ErrGap
	}
	if err != nil {
		return nil, "", j.wrap(fmt.Sprintf("read message %d of", seq), err)
	}
	return m.Data, m.Header.Get(nats.MsgIdHdr), nil
}

// Trim deletes the messages below a sequence.
func (j *Journal) Trim(ctx context.Context, below uint64) error {
	return j.wrap("trim", j.conn.Purge(ctx, j.opts.Stream, conn.PurgeRequest{Below: below}))
}

func (j *Journal) wrap(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s the %s of %s: %w", verb, j.opts.What, j.opts.Table, err)
}
