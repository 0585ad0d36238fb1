package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tailrace-cdc/replicator/sandbox/signature"
)

// CallError is the reply to a Call that DynamoDB refused.
type CallError struct {
	Operation string
	Status    int    // of the HTTP reply; 0: a fault closed the connection before there was one
	Code      string // such as "ConditionalCheckFailedException"
	Message   string
}

func (e *CallError) Error() string {
	if e.Status == 0 {
		return e.Operation + ": connection closed"
	}
	return fmt.Sprintf("%s: %d %s: %s", e.Operation, e.Status, e.Code, e.Message)
}

// Call makes one DynamoDB or DynamoDB Streams call as a client would, injected faults included, but
// without the network in between. operation is a name such as "PutItem", body and reply are JSON. A
// refused call returns a *CallError.
func (s *Sandbox) Call(ctx context.Context, operation, body string) (reply []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint(), strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", operation, err)
	}
	api := "DynamoDB_20120810."
	if streamOperations[operation] {
		api = "DynamoDBStreams_20120810."
	}
	req.Header.Set("X-Amz-Target", api+operation)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	now := s.Clock.Now().UTC()
	req.Header.Set("X-Amz-Date", now.Format("20060102T150405Z"))
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=sandbox/"+now.Format("20060102")+"/"+Region+
		"/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
	if s.o.CheckSignatures {
		signature.Sign(req, []byte(body), Region, now)
	}
	defer func() {
		switch r := recover(); r {
		case nil:
		case http.ErrAbortHandler: // what a handler panics with to close the connection
			reply, err = nil, &CallError{Operation: operation}
		default:
			panic(r)
		}
	}()
	rec := &recorder{header: http.Header{}, status: http.StatusOK}
	s.DynamoDB.ServeHTTP(rec, req)
	if rec.status == http.StatusOK {
		return rec.body.Bytes(), nil
	}
	return nil, callError(operation, rec)
}

// streamOperations are the operations of DynamoDB Streams; all others are DynamoDB's.
var streamOperations = map[string]bool{
	"ListStreams": true, "DescribeStream": true, "GetShardIterator": true, "GetRecords": true,
}

// callError reads the error of an awsJson reply. A body that is not JSON becomes the message.
func callError(operation string, rec *recorder) *CallError {
	var parts struct {
		Type    string `json:"__type"`
		Message string `json:"message"` // encoding/json also reads it from "Message"
	}
	if json.Unmarshal(rec.body.Bytes(), &parts) != nil {
		parts.Message = rec.body.String()
	}
	_, code, _ := strings.Cut(parts.Type, "#")
	return &CallError{Operation: operation, Status: rec.status, Code: code, Message: parts.Message}
}

// recorder keeps the reply of a handler.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
