package s3

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// lifecycles keeps the lifecycle configuration of each bucket, which is shown and never carried
// out.
type lifecycles struct {
	store *Store
	next  http.Handler

	mu  sync.Mutex
	all map[string][]byte // by bucket: the configuration as it was put
}

// maxLifecycle bounds a configuration; the service takes a thousand rules.
const maxLifecycle = 1 << 20

// ServeHTTP answers requests for ?lifecycle of a bucket, and passes the others on.
func (l *lifecycles) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !r.URL.Query().Has("lifecycle") || key != "" {
		l.next.ServeHTTP(w, r)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	text, ok := l.all[bucket]
	switch {
	case !l.store.Exists(bucket):
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodPut:
		var put struct {
			XMLName xml.Name   `xml:"LifecycleConfiguration"`
			Rules   []struct{} `xml:"Rule"`
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, maxLifecycle))
		if err != nil || xml.Unmarshal(body, &put) != nil || len(put.Rules) == 0 {
			refuse(w, http.StatusBadRequest, "MalformedXML")
			return
		}
		l.all[bucket] = body
	case r.Method == http.MethodDelete:
		delete(l.all, bucket)
		w.WriteHeader(http.StatusNoContent)
	case !ok:
		refuse(w, http.StatusNotFound, "NoSuchLifecycleConfiguration")
	default:
		w.Header().Set("Content-Type", "application/xml")
		_, _ = w.Write(text) // the client is gone if this fails
	}
}

// refuse answers with an error of the service.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code) // as above
}
