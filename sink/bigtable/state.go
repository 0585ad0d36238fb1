package bigtable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

const stateQualifier = "state"

// StateFormat is the format of a state row, and the highest that this build reads.
const StateFormat = 1

var (
	// ErrNoState means that the table has no row yet: a first start.
	ErrNoState = errors.New("no state row")
	// ErrStateExists means that another instance created the row first, with other content.
	ErrStateExists = errors.New("state row exists already")
	// ErrStateChanged means that another instance changed the row since it was loaded.
	ErrStateChanged = errors.New("state row changed meanwhile")
)

// NewerFormatError is a row written by a later program.
type NewerFormatError struct{ Have, Know int }

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("state row has format %d, this program knows %d: use the newer program", e.Have, e.Know)
}

// Identity is what a log and its rows in Bigtable belong to. A log with another identity must not
// be applied.
type Identity struct {
	Pipeline    string    `json:"pipeline"`
	Table       string    `json:"table"`        // source table
	TableID     string    `json:"table_id"`     // DynamoDB's TableId: a re-created table is another one
	StreamARN   string    `json:"stream_arn"`   // a re-enabled stream is a boundary
	LogCreated  time.Time `json:"log_created"`  // the NATS stream's creation
	MappingHash string    `json:"mapping_hash"` // of the compiled mapping, whose text is stored, see StoreMapping
	// Target is the full name of the target table, see TargetName; empty for a table that is only
	// archived.
	Target string `json:"target,omitempty"`
}

// State is one row of the state table. Versions must grow across lives, whatever happens to the
// log. Therefore no version exceeds its record's creation time by more than Lead, the version
// reservation, and a new life starts above that.
type State struct {
	Format   int            `json:"format"`   // Rule 11: Everything stored carries a format number.
	Revision int64          `json:"revision"` // grows by one with each change, so that no two contents are equal
	Identity Identity       `json:"identity"`
	Life     uint64         `json:"life"`   // raised by `recover`
	Floor    change.Version `json:"floor"`  // clocks of this life start at or above it
	Lead     time.Duration  `json:"lead"`   // version reservation: how far versions may run ahead of creation times
	Issued   bool           `json:"issued"` // set before the first frame: from then on an empty log is a lost one

	Recovering bool      `json:"recovering,omitempty"` // a recovery has begun: nothing else may go on with any log
	OldLog     time.Time `json:"old_log,omitzero"`     // creation of the log that the recovery leaves
	Cluster    string    `json:"cluster,omitempty"`    // to which the app profile routed the writes; "": not known
	Fenced     *Fenced   `json:"fenced,omitempty"`     // nil: the rows belong to the pipeline

	stored []byte // the cell as loaded, with which CompareAndSet compares
}

// Same reports whether two loaded or stored states are the same revision with the same content.
func (s *State) Same(o *State) bool {
	return s.Revision == o.Revision && bytes.Equal(s.stored, o.stored)
}

// Fenced records that a cutover has fenced the table: its rows may belong to the application,
// whatever the log holds, and also when there is no log any more. It is stored before the fence in
// the log, and removed after it.
type Fenced struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
}

// stateKey is unambiguous: table names of DynamoDB hold no '#'.
func stateKey(pipeline, table string) []byte { return []byte(pipeline + "#" + table) }

// LoadState reads the row of a pipeline's table; ErrNoState if there is none. It makes one attempt,
// so that a Transient error shows at once which address did not answer, and why.
func (c *Client) LoadState(ctx context.Context, pipeline, table string) (*State, error) {
	stored, err := c.readCell(ctx, stateKey(pipeline, table), stateQualifier)
	if err != nil {
		return nil, fmt.Errorf("load state: %w", err)
	}
	if stored == nil {
		return nil, fmt.Errorf("load state: %w", ErrNoState)
	}
	return decodeState(stored)
}

// loadRepeatedly is LoadState, repeated until the service answers or ctx ends.
func (c *Client) loadRepeatedly(ctx context.Context, pipeline, table string) (*State, error) {
	return backoff.Retry(ctx, func() (*State, error) {
		s, err := c.LoadState(ctx, pipeline, table)
		return s, retryError(err)
	}, backoff.WithBackOff(c.newBackOff()), backoff.WithMaxElapsedTime(0))
}

func decodeState(stored []byte) (*State, error) {
	s := &State{stored: stored}
	if err := json.Unmarshal(stored, s); err != nil {
		return nil, fmt.Errorf("decode state: %w", err)
	}
	if s.Format > StateFormat { // Rule 11
		return nil, fmt.Errorf("decode state: %w", &NewerFormatError{Have: s.Format, Know: StateFormat})
	}
	return s, nil
}

// CreateState stores the first row, and makes s the loaded state. It succeeds again with the same
// content, and returns ErrStateExists if the row has another one.
func (c *Client) CreateState(ctx context.Context, s *State) error {
	next := *s
	next.Format, next.Revision = StateFormat, 1
	won, err := c.storeIf(ctx, &next, columnFilter(stateQualifier), false)
	if err != nil {
		return fmt.Errorf("create state: %w", err)
	}
	if !won {
		return fmt.Errorf("create state: %w", ErrStateExists)
	}
	*s = next
	return nil
}

// CompareAndSet replaces the loaded state old by next, which becomes the loaded state. It returns
// ErrStateChanged if the row has changed since it was loaded.
func (c *Client) CompareAndSet(ctx context.Context, old, next *State) error {
	if len(old.stored) == 0 {
		return errors.New("set state: the old state was not loaded")
	}
	n := *next
	n.Format, n.Revision = StateFormat, old.Revision+1
	won, err := c.storeIf(ctx, &n, cellValue(stateQualifier, old.stored), true)
	if err != nil {
		return fmt.Errorf("set state: %w", err)
	}
	if !won {
		return fmt.Errorf("set state: %w", ErrStateChanged)
	}
	*next = n
	return nil
}

// RemoveState removes the loaded row of a table that will never be replicated again. It returns
// ErrStateChanged if the row has changed since it was loaded, and succeeds if it is gone.
func (c *Client) RemoveState(ctx context.Context, s *State) error {
	r := &request{key: stateKey(s.Identity.Pipeline, s.Identity.Table), skip: []op{{kind: opDeleteRow}}}
	var err error
	if r.filter, err = proto.Marshal(cellValue(stateQualifier, s.stored)); err != nil {
		return fmt.Errorf("remove state: encode predicate: %w", err)
	}
	if err := c.table(tableschema.StateTable).deliver(ctx, r, 0); err != nil {
		return fmt.Errorf("remove state: %w", err)
	}
	if r.matched {
		return nil
	}
	switch _, err := c.loadRepeatedly(ctx, s.Identity.Pipeline, s.Identity.Table); {
	case errors.Is(err, ErrNoState): // an earlier attempt, whose reply was lost
		return nil
	case err != nil:
		return fmt.Errorf("remove state: %w", err)
	}
	return fmt.Errorf("remove state: %w", ErrStateChanged)
}

// Reserve raises the version reservation to at least lead, and returns the state with it. Versions
// up to creation time + lead may be issued only after Reserve has returned without an error.
//
// Rule 5: versions are assigned once and grow across lives.
func (c *Client) Reserve(ctx context.Context, s *State, lead time.Duration) (*State, error) {
	for {
		if s.Lead >= lead {
			return s, nil
		}
		next := *s
		next.Lead = lead
		err := c.CompareAndSet(ctx, s, &next)
		if err == nil {
			return &next, nil
		}
		if !errors.Is(err, ErrStateChanged) {
			return nil, fmt.Errorf("reserve lead: %w", err)
		}
		fresh, err := c.loadRepeatedly(ctx, s.Identity.Pipeline, s.Identity.Table)
		if err != nil {
			return nil, fmt.Errorf("reserve lead: %w", err)
		}
		if fresh.Identity != s.Identity || fresh.Life != s.Life {
			return nil, fmt.Errorf("reserve lead: %w", ErrStateChanged)
		}
		s = fresh
	}
}

// storeIf stores next if the predicate's result is want, and reports whether the row holds next
// afterwards.
func (c *Client) storeIf(ctx context.Context, next *State, predicate *btpb.RowFilter, want bool) (bool, error) {
	stored, err := json.Marshal(next)
	if err != nil {
		return false, fmt.Errorf("encode state: %w", err)
	}
	next.stored = stored
	matched, err := c.setIf(ctx, &stateCell{
		key: stateKey(next.Identity.Pipeline, next.Identity.Table), qualifier: stateQualifier, value: stored,
		time: next.Revision,
	}, predicate, want)
	if err != nil {
		return false, err
	}
	if matched == want {
		return true, nil
	}
	// An earlier attempt of ours may have stored it, and its reply was lost.
	have, err := c.loadRepeatedly(ctx, next.Identity.Pipeline, next.Identity.Table)
	if errors.Is(err, ErrNoState) {
		return false, nil
	}
	return err == nil && bytes.Equal(have.stored, stored), err
}

// stateCell is a cell of the state table.
type stateCell struct {
	key       []byte
	qualifier string
	value     []byte
	time      int64 // ms
}

// setIf sets the only cell of a column if the predicate's result for the row is want. It returns
// the result.
func (c *Client) setIf(
	ctx context.Context, x *stateCell, predicate *btpb.RowFilter, want bool,
) (matched bool, err error) {
	column := []byte(x.qualifier)
	write := []op{
		deleteColumn(tableschema.StateFamily, column, 0, 0),
		{kind: opSet, family: tableschema.StateFamily, qualifier: column, value: x.value, from: x.time},
	}
	r := &request{key: x.key}
	if r.filter, err = proto.Marshal(predicate); err != nil {
		return false, fmt.Errorf("encode predicate: %w", err)
	}
	if want {
		r.skip = write
	} else {
		r.body = write
	}
	err = c.table(tableschema.StateTable).deliver(ctx, r, 0)
	return r.matched, err
}

// readCell reads the newest cell of a column of the state table; nil if there is none. It makes one
// attempt, over the connection of the writes, two where the table is not there: Google's client
// would repeat a refused connection without a message until ctx ends.
func (c *Client) readCell(ctx context.Context, key []byte, qualifier string) (value []byte, err error) {
	err = askTwice(ctx, func() error {
		value, err = c.readCellOnce(ctx, key, qualifier)
		return err
	})
	return value, err
}

func (c *Client) readCellOnce(ctx context.Context, key []byte, qualifier string) ([]byte, error) {
	t := c.table(tableschema.StateTable)
	call, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, t.headers[ofStream]), c.opt.Timeout)
	defer cancel()
	rows, err := btpb.NewBigtableClient(c.conn).ReadRows(call, &btpb.ReadRowsRequest{
		TableName: t.name, AppProfileId: c.opt.AppProfile, RowsLimit: 1, Rows: &btpb.RowSet{RowKeys: [][]byte{key}},
		Filter: chain(columnFilter(qualifier), latest()),
	})
	var value []byte
	for err == nil {
		var reply *btpb.ReadRowsResponse
		if reply, err = rows.Recv(); err == nil {
			value = appendChunks(value, reply.Chunks)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	} else if ctx.Err() != nil {
		err = interrupted(ctx, err)
	}
	c.report(tableschema.StateTable, err)
	return value, err
}

// appendChunks appends the chunks of a reply to the value of a row's only cell. A large value comes
// in several replies.
func appendChunks(value []byte, chunks []*btpb.ReadRowsResponse_CellChunk) []byte {
	for _, chunk := range chunks {
		if value == nil {
			value = []byte{}
		}
		if value = append(value, chunk.Value...); chunk.GetResetRow() {
			value = nil
		}
	}
	return value
}

// columnFilter selects the cells of one column of the state table.
func columnFilter(qualifier string) *btpb.RowFilter {
	return columnOf(tableschema.StateFamily, []byte(qualifier))
}
