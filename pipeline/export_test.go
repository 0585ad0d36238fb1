package pipeline

import (
	"context"
)

// BeforeLetters calls f before every walk over dead letters. It is set before Run.
func (p *Pipeline) BeforeLetters(f func(context.Context)) { p.shared.BeforeWalk = f }
