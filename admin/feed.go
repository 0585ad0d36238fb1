package admin

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

const (
	feedEvery   = 2 * time.Second // how often an open page is compared with what it would be now
	feedReaders = 32              // open pages at a time: each costs a rendering every feedEvery
)

// feed notifies open pages of changes, by server-sent events.
type feed struct {
	pages   pages
	readers chan struct{} // a token per open page
}

func newFeed(p pages) *feed { return &feed{pages: p, readers: make(chan struct{}, feedReaders)} }

// ServeHTTP sends an event whenever the page that the query names has changed, until the client or
// the server goes.
func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead { // its connection may stay open, and nothing is ever sent on it
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	select {
	case f.readers <- struct{}{}:
		defer func() { <-f.readers }()
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	path := r.URL.Query().Get("page")
	last, err := f.pages.render(r.Context(), path)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	stream := http.NewResponseController(w)
	// The event at the start brings what has changed between the page and its feed.
	event, tick := "retry: 2000\nevent: changed\ndata: -\n\n", time.NewTicker(feedEvery)
	defer tick.Stop()
	for {
		// The server's time limit for a reply is for one that ends.
		_ = stream.SetWriteDeadline(time.Now().Add(5 * feedEvery))
		if _, err := fmt.Fprint(w, event); err != nil || stream.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		event = ": unchanged\n\n" // notices a reader that has gone
		if next, err := f.pages.render(r.Context(), path); err == nil && !bytes.Equal(next, last) {
			event, last = "event: changed\ndata: -\n\n", next
		}
	}
}
