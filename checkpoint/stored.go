package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// storedState is a State as snapshots hold it, in JSON. Builds of all formats read it, so its
// members keep their names and their order, whatever the State in memory looks like.
type storedState struct {
	Epoch    uint64    `json:"epoch"`
	Owner    string    `json:"owner,omitempty"`
	Nonce    Nonce     `json:"nonce"`
	Released bool      `json:"released,omitempty"`
	Life     uint64    `json:"life"`
	Identity *Identity `json:"identity,omitempty"`

	Streams []*Stream               `json:"streams,omitempty"`
	Shards  map[string]*storedShard `json:"shards,omitempty"`
	Marks   map[string]Mark         `json:"marks,omitempty"`
	Gaps    []Gap                   `json:"gaps,omitempty"`
	Paused  bool                    `json:"paused,omitempty"`
	Pausing Pausing                 `json:"pausing,omitzero"`
	Halts   map[string]*Halt        `json:"halts,omitempty"`

	Date           change.Millis  `json:"date,omitempty"`
	Listed         change.Millis  `json:"listed,omitempty"`
	LastFrame      uint64         `json:"last_frame,omitempty"`
	Changes        uint64         `json:"changes,omitempty"`
	DroppedVersion change.Version `json:"top,omitempty"`
	Watermarks     []Watermark    `json:"horizons,omitempty"`
	Starting       *Start         `json:"starting,omitempty"`
	Foreign        uint64         `json:"foreign,omitempty"`

	Backfill   string         `json:"backfill,omitempty"`
	NotCopied  int64          `json:"not_copied,omitempty"`
	Copy       *CopyState     `json:"copy,omitempty"`
	Resync     *PendingResync `json:"resync,omitempty"`
	LastResync *Healed        `json:"last_resync,omitempty"`
	Accepting  *Accept        `json:"accepting,omitempty"`
	Accepted   *Accept        `json:"accepted,omitempty"`
	Switched   *Switch        `json:"switched,omitempty"`
	Fence      *Fence         `json:"fence,omitempty"`
	Expired    ExpiredCounts  `json:"expired,omitzero"`
	Events     []Event        `json:"events,omitempty"`
	Reads      int            `json:"reads,omitempty"`
	ReleasedTo string         `json:"released_to,omitempty"`
}

// storedShard is a Shard as snapshots hold it.
type storedShard struct {
	ID          string          `json:"id"`
	Stream      string          `json:"stream"`
	Parent      string          `json:"parent,omitempty"`
	Phase       string          `json:"phase"`
	Pos         change.Position `json:"pos"`
	Clock       change.Version  `json:"clock"`
	Watermark   change.Millis   `json:"through,omitempty"`
	Closed      bool            `json:"closed,omitempty"`
	Gapped      bool            `json:"gapped,omitempty"`
	Horizon     bool            `json:"horizon,omitempty"`
	Excused     change.Millis   `json:"excused,omitempty"`
	FirstSeen   change.Millis   `json:"seen"`
	AbsentSince change.Millis   `json:"absent,omitempty"`
	LastAlive   change.Millis   `json:"alive,omitempty"`
	FinishedAt  change.Millis   `json:"ended,omitempty"`
	Early       bool            `json:"early,omitempty"`
	Unended     bool            `json:"unended,omitempty"`
	SeenOpen    bool            `json:"seen_open,omitempty"`
}

// storedShardBytes is a generous guess at the JSON of one shard, so that the buffer for all of them
// seldom grows.
const storedShardBytes = 400

// encodeState returns the JSON of a state. The shards are most of it, and are encoded one by one:
// their stored form is never in memory as a whole.
func encodeState(s *State) ([]byte, error) {
	in := &storedState{
		Epoch: s.Epoch, Owner: s.Owner, Nonce: s.Nonce, Released: s.Released, Life: s.Life, Identity: s.Identity,
		Streams: s.Streams, Marks: s.Marks, Gaps: s.Gaps,
		Paused: s.Paused, Pausing: s.Pausing, Halts: s.Halts,
		Date: s.Date, Listed: s.Listed, LastFrame: s.LastFrame, Changes: s.Changes, DroppedVersion: s.DroppedVersion,
		Watermarks: s.Watermarks, Starting: s.Starting, Foreign: s.Foreign,
		Backfill: s.Backfill, NotCopied: s.notCopied, Copy: s.Copy, Resync: s.Resync, LastResync: s.LastResync,
		Accepting: s.Accepting,
		Accepted:  s.Accepted, Switched: s.Switched, Fence: s.Fence, Expired: s.Expired, Reads: s.Reads,
		ReleasedTo: s.ReleasedTo, Events: s.Events,
	}
	if len(s.Shards) == 0 {
		return json.Marshal(in)
	}
	in.Shards = map[string]*storedShard{"": nil} // a placeholder: inside of strings, JSON escapes the quotes
	b, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	before, after, _ := bytes.Cut(b, []byte(`{"":null}`))
	var out bytes.Buffer
	out.Grow(len(b) + storedShardBytes*len(s.Shards))
	out.Write(before)
	if err := encodeShards(&out, s.Shards); err != nil {
		return nil, err
	}
	out.Write(after)
	return out.Bytes(), nil
}

// encodeShards appends the JSON of shards by ID, in the order of the IDs, as package json writes a
// map.
func encodeShards(out *bytes.Buffer, shards map[string]*Shard) error {
	var one bytes.Buffer
	encoder, stored := json.NewEncoder(&one), new(storedShard)
	ids := slices.AppendSeq(make([]string, 0, len(shards)), maps.Keys(shards))
	slices.Sort(ids)
	separator := byte('{')
	for _, id := range ids {
		one.Reset()
		*stored = shards[id].stored()
		if err := encoder.Encode(stored); err != nil {
			return err
		}
		shard := bytes.TrimSuffix(one.Bytes(), []byte("\n"))
		key, _, _ := bytes.Cut(shard[len(`{"id":`):], []byte(`,"stream":`)) // the ID as JSON
		out.WriteByte(separator)
		out.Write(key)
		out.WriteByte(':')
		out.Write(shard)
		separator = ','
	}
	return out.WriteByte('}')
}

// decodeState reads the JSON of a state. A shard under another key than its ID, or without a valid
// phase, is an error.
func decodeState(b []byte) (*State, error) {
	in := storedState{Shards: map[string]*storedShard{}, Marks: map[string]Mark{}}
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&in); err != nil {
		return nil, err
	}
	if in.Shards == nil || slices.Contains(in.Streams, nil) ||
		slices.Contains(slices.Collect(maps.Values(in.Halts)), nil) {
		return nil, errors.New("no shards, or a null among the streams or halts")
	}
	s := NewState()
	s.Epoch, s.Nonce, s.Released = in.Epoch, in.Nonce, in.Released
	s.Owner, s.Life, s.Identity = in.Owner, in.Life, in.Identity
	s.Streams, s.Marks, s.Gaps = in.Streams, in.Marks, in.Gaps
	s.Paused, s.Pausing, s.Halts = in.Paused, in.Pausing, in.Halts
	s.Date, s.Listed, s.DroppedVersion = in.Date, in.Listed, in.DroppedVersion
	s.LastFrame, s.Changes = in.LastFrame, in.Changes
	s.Watermarks, s.Starting, s.Foreign = in.Watermarks, in.Starting, in.Foreign
	s.notCopied = in.NotCopied
	s.Backfill, s.Copy, s.Resync, s.LastResync, s.Accepting = in.Backfill, in.Copy, in.Resync, in.LastResync, in.Accepting
	s.Accepted, s.Switched, s.Fence, s.Expired = in.Accepted, in.Switched, in.Fence, in.Expired
	s.Reads, s.ReleasedTo, s.Events = in.Reads, in.ReleasedTo, in.Events
	if s.Copy != nil && s.Copy.Marks == nil {
		s.Copy.Marks = map[int]CopyMark{}
	}
	for id, stored := range in.Shards {
		if stored == nil || stored.ID != id || stored.phase() == 0 {
			return nil, fmt.Errorf("shard %q is broken", id)
		}
		s.Shards[id] = stored.shard()
	}
	s.Reindex()
	return s, nil
}

// stored returns the stored form of a shard.
func (sh *Shard) stored() storedShard {
	return storedShard{
		ID: sh.ID, Stream: sh.Stream, Parent: sh.Parent, Phase: sh.Phase.String(), Pos: sh.Pos, Clock: sh.Clock,
		Watermark: sh.Watermark, Closed: sh.Phase.Closed(), Early: sh.Phase == PhaseEarly,
		Gapped: sh.Loss.Pending, Horizon: sh.Loss.AtTrimHorizon, Excused: sh.Loss.AcceptedUntil,
		FirstSeen: sh.FirstSeen, AbsentSince: sh.AbsentSince, LastAlive: sh.LastAlive, FinishedAt: sh.FinishedAt,
		Unended: sh.Unended, SeenOpen: sh.SeenOpen,
	}
}

// shard is the reverse of stored.
func (in *storedShard) shard() *Shard {
	return &Shard{
		ID: in.ID, Stream: in.Stream, Parent: in.Parent, Phase: in.phase(), Pos: in.Pos, Clock: in.Clock,
		Watermark: in.Watermark,
		Loss:      Loss{Pending: in.Gapped, AtTrimHorizon: in.Horizon, AcceptedUntil: in.Excused},
		FirstSeen: in.FirstSeen, AbsentSince: in.AbsentSince, LastAlive: in.LastAlive, FinishedAt: in.FinishedAt,
		Unended: in.Unended, SeenOpen: in.SeenOpen,
	}
}

// phase returns the phase that the stored flags stand for; 0 when there is no such phase.
func (in *storedShard) phase() Phase {
	switch {
	case in.Phase == "waiting" && in.Closed:
		return PhaseWaitingClosed
	case in.Phase == "waiting":
		return PhaseWaiting
	case in.Phase == "open" && in.Closed:
		return PhaseClosed
	case in.Phase == "open":
		return PhaseOpen
	case in.Phase == "finished" && in.Early:
		return PhaseEarly
	case in.Phase == "finished":
		return PhaseFinished
	}
	return 0
}
