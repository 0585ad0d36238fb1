package checkpoint

import "github.com/tailrace-cdc/replicator/change"

// Stream is one stream ARN of the table. Disabling and enabling a stream makes a new one.
type Stream struct {
	ARN      string         `json:"arn"`
	Date     change.Millis  `json:"date"`               // of the listing that started it
	Mode     string         `json:"mode,omitempty"`     // start position as it was configured
	At       change.Millis  `json:"at,omitempty"`       // start position; 0 = trim horizon
	Floor    change.Version `json:"floor,omitempty"`    // every version of this stream is above it
	After    change.Millis  `json:"after,omitempty"`    // see Start.After
	Disabled bool           `json:"disabled,omitempty"` // takes no more writes
	Seq      uint64         `json:"seq"`                // of the entry that started it
}

// Floor returns the version below which the life of the log writes nothing: its copies and resyncs
// write above it, and its changes above what these take from it. 0 in a target that held nothing.
func (s *State) Floor() change.Version {
	if len(s.Streams) == 0 {
		return 0
	}
	return s.Streams[0].Floor
}

// clockAtStart returns the clock of a shard of a stream before its first record. Where records
// older than the life are read, their versions are below the floor, and the reader raises the clock
// above it at the first record that counts.
//
// Rule 5: the first change of a shard is above what copies and resyncs take from the floor of the
// life, in each stream of the log. Else a floor that is ahead of the time gives a copied item and
// its first change one version, and the row skips the change.
func (s *State) clockAtStart(st *Stream) change.Version {
	if st.After > 0 {
		return 0
	}
	return max(st.Floor, s.lowestClock())
}

// lowestClock returns the lowest clock of a shard with which its next change is applied; 0 without
// a floor, because then copies take their versions from the time alone.
func (s *State) lowestClock() change.Version {
	if s.Floor() == 0 {
		return 0
	}
	return change.LowestRead(s.Floor())
}

// LifeOf returns what clocks and sinks need of the life that a stream's records belong to.
func (s *State) LifeOf(arn string) change.Life {
	if st := s.Stream(arn); st != nil && st.After > 0 {
		return change.Life{Floor: st.Floor, After: st.After}
	}
	return change.Life{}
}

// Lives returns LifeOf for the streams where it is not zero.
func (s *State) Lives() map[string]change.Life {
	lives := map[string]change.Life{}
	for _, st := range s.Streams {
		if l := s.LifeOf(st.ARN); l != (change.Life{}) {
			lives[st.ARN] = l
		}
	}
	return lives
}

// LiveStream returns the stream that is being read, nil before the start.
func (s *State) LiveStream() *Stream {
	if len(s.Streams) == 0 {
		return nil
	}
	return s.Streams[len(s.Streams)-1]
}

// Stream returns the stream with an ARN, nil when it was never started.
func (s *State) Stream(arn string) *Stream {
	for _, st := range s.Streams {
		if st.ARN == arn {
			return st
		}
	}
	return nil
}

// Drained reports whether every shard of a stream is read to its end and no further one can appear.
func (s *State) Drained(arn string) bool {
	st := s.Stream(arn)
	return st != nil && st.Disabled && s.index.unfinished[arn] == 0
}

// Readable reports whether a shard may be read now: it has begun, is not finished, and waits for no
// operator because of a gap. It does not look at the parent: a shard begins in openShard, once its
// parent is finished in the log.
func (s *State) Readable(sh *Shard) bool { return sh.Phase.Reading() && !sh.Loss.Pending }

// CompleteUntil returns, for a shard that is to be read from its beginning or from the start time,
// the time up to which none of its changes is missing: they were read, did not exist, are older
// than what the start promises, or their loss was accepted. Once the retention has passed since
// that time, some of the shard may have been trimmed, although neither an iterator at the trim
// horizon nor one at a time reports it.
func (s *State) CompleteUntil(sh *Shard) change.Millis {
	since := max(sh.Watermark, sh.Loss.AcceptedUntil)
	if st := s.Stream(sh.Stream); st != nil {
		since = max(since, change.StreamCompleteUntil(st.ARN, st.At, st.Date))
	}
	return since
}
