package dynamo

import (
	"cmp"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/capacity"
	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sandbox/s3"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// Options configures a server. Stream is required.
type Options struct {
	Stream     *stream.Engine
	Clock      *clock.Clock  // nil: the stream engine's
	Region     string        // default us-east-1
	Account    string        // default 000000000000
	Seed       uint64        // of random faults
	Buckets    *s3.Store     // where exports are written; nil: no bucket exists
	Transition time.Duration // how long tables are CREATING, UPDATING, DELETING; 0: until the next request
	Log        *zap.Logger   // nil: none
}

// Server has the tables and answers requests. It is safe for concurrent use.
type Server struct {
	Reads  *capacity.Meter // counts what reads consume, and limits it on demand
	Faults *Faults         // of reads

	o       Options
	ids     atomic.Uint64 // request ids given out
	handler atomic.Pointer[http.Handler]
	tokens  tokens
	exports exports

	mu     sync.RWMutex // guards tables; a table's own lock guards its content
	tables map[string]*table.Table
}

// New returns a server without tables.
func New(o Options) *Server {
	if o.Clock == nil {
		o.Clock = o.Stream.Clock()
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	o.Region = cmp.Or(o.Region, "us-east-1")
	o.Account = cmp.Or(o.Account, "000000000000")
	s := &Server{Reads: capacity.New(), Faults: newFaults(o.Seed), o: o, tables: map[string]*table.Table{}}
	var base http.Handler = http.HandlerFunc(s.serve)
	s.handler.Store(&base)
	return s
}

// Use adds a middleware around all those added before. It may be called while requests are served.
func (s *Server) Use(mw func(http.Handler) http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := mw(*s.handler.Load())
	s.handler.Store(&next)
}

// ServeHTTP answers one request of either API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*s.handler.Load()).ServeHTTP(w, r)
}

// The prefixes of X-Amz-Target.
const (
	tablePrefix  = "DynamoDB_20120810."
	streamPrefix = "DynamoDBStreams_20120810."
)

// OperationOf returns the operation of a request, such as "PutItem" or "GetRecords", or "" when its
// target names neither API.
func OperationOf(r *http.Request) string {
	target := r.Header.Get("X-Amz-Target")
	if op, ok := strings.CutPrefix(target, tablePrefix); ok {
		return op
	}
	op, _ := strings.CutPrefix(target, streamPrefix)
	if op == target {
		return ""
	}
	return op
}

// serve is the handler behind all middleware.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["X-Amzn-Requestid"] = []string{s.requestID()}
	h["Date"] = []string{s.o.Clock.Now().UTC().Format(http.TimeFormat)}
	h["Server"] = []string{"Server"}
	if s.notAPI(w, r) {
		return
	}
	body, bad := readBody(r)
	switch bad {
	case nil:
	case errTooLarge:
		reply(w, bad.Status(), nil)
		return
	default:
		reply(w, bad.Status(), bad.JSON())
		return
	}
	target := r.Header.Get("X-Amz-Target")
	if op, ok := strings.CutPrefix(target, streamPrefix); ok {
		s.serveStream(w, r, op, body)
		return
	}
	out, bad := s.answer(r, strings.TrimPrefix(target, tablePrefix), body)
	if bad != nil {
		reply(w, bad.Status(), bad.JSON())
		return
	}
	reply(w, http.StatusOK, out)
}

// notAPI answers requests that do not call the API: health checks, browsers, wrong methods. It
// reports whether it did.
func (s *Server) notAPI(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	if r.Header.Get("Origin") != "" {
		h.Set("Access-Control-Allow-Origin", "*")
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
			h.Set("Access-Control-Allow-Methods", r.Header.Get("Access-Control-Request-Method"))
			h.Set("Access-Control-Max-Age", "172800")
			w.WriteHeader(http.StatusOK)
			return true
		}
	}
	if r.Method == http.MethodGet {
		reply(w, http.StatusOK, []byte("healthy: dynamodb."+s.o.Region+".amazonaws.com "))
		return true
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if r.Method != http.MethodPost || kind != "application/x-amz-json-1.0" && kind != "application/json" {
		reply(w, http.StatusNotFound, []byte("<UnknownOperationException/>\n"))
		return true
	}
	h["Content-Type"] = []string{kind}
	return false
}

// serveStream answers a request to the Streams API.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request, op string, body []byte) {
	if bad := checkAuth(r); bad != nil {
		reply(w, bad.Status(), bad.JSON())
		return
	}
	status, out := s.o.Stream.Handle(op, body)
	reply(w, status, out)
	s.o.Stream.Release(out)
}

// reply writes a reply with the checksum that the SDKs verify.
func reply(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["X-Amz-Crc32"] = []string{strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails only when the client has disconnected
}

// Refuse answers a request with an error that a middleware has found.
func (s *Server) Refuse(w http.ResponseWriter, bad *wire.Error) {
	h := w.Header()
	h["X-Amzn-Requestid"] = []string{s.requestID()}
	h["Date"] = []string{s.o.Clock.Now().UTC().Format(http.TimeFormat)}
	h["Server"] = []string{"Server"}
	h["Content-Type"] = []string{"application/x-amz-json-1.0"}
	reply(w, bad.Status(), bad.JSON())
}

// requestID returns an id in the service's form.
func (s *Server) requestID() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	var id [52]byte
	x := s.ids.Add(1) * 0x9e3779b97f4a7c15
	for i := range id {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		id[i] = letters[x%36]
	}
	return string(id[:])
}

// checkAuth checks the form of a signature, not its value.
func checkAuth(r *http.Request) *wire.Error {
	auth := r.Header.Get("Authorization")
	if auth == "" && !strings.Contains(r.URL.RawQuery, "X-Amz-Algorithm=") || auth != "" &&
		!strings.HasPrefix(auth, "AWS4-") {
		return &wire.Error{Code: "MissingAuthenticationTokenException", Message: "Request is missing Authentication Token"}
	}
	if auth == "" {
		return nil
	}
	var missing strings.Builder
	for _, part := range []string{"Credential", "Signature", "SignedHeaders"} {
		if !strings.Contains(auth, part+"=") {
			missing.WriteString("Authorization header requires '" + part + "' parameter. ")
		}
	}
	if r.Header.Get("X-Amz-Date") == "" && r.Header.Get("Date") == "" {
		missing.WriteString("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ")
	}
	if missing.Len() > 0 {
		return &wire.Error{Code: "IncompleteSignatureException", Message: missing.String() + "Authorization=" + auth}
	}
	return nil
}

// call is a request after its types and constraints are checked.
type call struct {
	*wire.Node
	op     string
	body   []byte
	origin string // scheme and address that the client used
}

// operation is the shape of a request and the method that answers it.
type operation struct {
	shape *wire.Shape
	run   func(*Server, *call) ([]byte, *wire.Error)
}

// answer checks a request in the service's order and runs its operation.
func (s *Server) answer(r *http.Request, op string, body []byte) ([]byte, *wire.Error) {
	n, err := wire.Parse(unsafe.String(unsafe.SliceData(body), len(body)))
	if err != nil {
		return nil, &wire.Error{Code: "SerializationException"}
	}
	o, ok := operations[op]
	if !ok {
		if unsupported[op] {
			return nil, wire.Invalid("%s is not supported by the sandbox", op)
		}
		return nil, &wire.Error{Code: "UnknownOperationException"}
	}
	if bad := checkAuth(r); bad != nil {
		return nil, bad
	}
	nameTables(n)
	if bad := o.shape.Check(n, attr.CheckShape); bad != nil {
		return nil, bad
	}
	return o.run(s, &call{n, op, body, origin(r)})
}

// origin returns the scheme and address that the client used.
func origin(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// nameTables replaces the ARNs of tables by their names.
func nameTables(n *wire.Node) {
	if f := n.Get("TableName"); f != nil && f.Kind == wire.String {
		f.Text = tableOf(f.Text)
	}
	items := n.Get("TransactItems")
	if items == nil {
		return
	}
	for i := range items.Kids {
		actions := items.Kids[i].Kids
		for j := range actions {
			nameTables(&actions[j])
		}
	}
}
