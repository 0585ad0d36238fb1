package pipeline

import (
	"context"
)

// BeforeLetters calls f before every walk over dead letters. It is set before Run.
func (p *Pipeline) BeforeLetters(f func(context.Context)) { p.shared.BeforeWalk = f }

// HandOver begins to hand the log of a table over to another process.
func (p *Pipeline) HandOver(source, to string) { p.handOver(source, to) }
