package pattern

import "testing"

// TestWhatAKilledInstanceHadIsGivenUp: the counts of reads and items add up, whatever was under way when
// it was killed.
func TestWhatAKilledInstanceHadIsGivenUp(t *testing.T) {
	c := NewCollector()
	get := Of("GetItem", []byte(`{"TableName":"Orders","Key":{"pk":{"S":"a"}}}`))
	other := Of("GetItem", []byte(`{"TableName":"Users","Key":{"pk":{"S":"a"}}}`))
	put := Of("PutItem", []byte(`{"TableName":"Orders","Item":{"pk":{"S":"a"}}}`))
	for _, r := range []Request{get, get, get, get, other, put} {
		c.Add(r, Answer{})
	}
	c.Replay(&get.Asked[0].Of, func(r *Replay) {
		r.Replayed = 2
		r.Skip("busy", 1)
		r.Differed, r.Equal = 5, 1
		r.Wrongly("value", 1)
	})
	s := c.Snapshot()
	for range 2 {
		s.GiveUp("ended")
	}
	for i := range s.Patterns {
		n := &s.Patterns[i]
		if n.Pattern.Kind == Write {
			if n.Replay != nil {
				t.Errorf("%s: %+v", n.Pattern.Text(), n.Replay)
			}
			continue
		}
		if n.Keys != n.Replay.Replayed+n.Replay.Left() || n.Replay.Waiting() != 0 {
			t.Errorf("%s: %d keys, %+v", n.Pattern.Text(), n.Keys, n.Replay)
		}
	}
}
