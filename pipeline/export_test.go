package pipeline

import (
	"context"
	"iter"

	"github.com/tailrace-cdc/replicator/queue"
)

// BeforeLetters calls f at the begin of every walk over dead letters. It is set before Run.
func (p *Pipeline) BeforeLetters(f func(context.Context)) {
	p.listLetters = func(ctx context.Context, l *queue.Letters) iter.Seq2[*queue.Letter, error] {
		f(ctx)
		return l.All(ctx)
	}
}
