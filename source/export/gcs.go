package export

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/googleauth"
)

// gcsAttempts is how often a call is made. Without a limit the client repeats it for as long as its
// context lives, and an outage shows nowhere.
const gcsAttempts = 4

// openGCS opens gs://bucket with the application default credentials, or without any at an emulator
// (STORAGE_EMULATOR_HOST). Nothing of AWS is needed.
func openGCS(ctx context.Context, u *url.URL) (store, error) {
	if u.RawQuery != "" {
		return nil, refused(failure.Rejected, "remove what follows the question mark", "gs:// takes no options")
	}
	identity, err := googleauth.Options(ctx, storage.ScopeReadOnly)
	if err != nil {
		return nil, refused(failure.Denied, "see docs/credentials.md", "%w", err)
	}
	client, err := storage.NewClient(ctx, append(identity, option.WithScopes(storage.ScopeReadOnly))...)
	if err != nil {
		return nil, refused(failure.Denied, "run `gcloud auth application-default login`, set "+
			"GOOGLE_APPLICATION_CREDENTIALS, or give the process a service account", "%w", err)
	}
	client.SetRetry(storage.WithMaxAttempts(gcsAttempts))
	b, err := gcsblob.OpenBucket(ctx, nil, u.Host, &gcsblob.Options{Client: client})
	if err != nil {
		return nil, err
	}
	return &bucket{b, inGCS{}, u.Scheme, u.Host, ""}, nil
}

// inGCS is Google Cloud Storage as a service.
type inGCS struct{}

// stored asks for objects as they are. Google unpacks an object on the way if its metadata name
// gzip, as a copy between clouds may write them, and its checksum would be another one then.
//
// Source: https://cloud.google.com/storage/docs/transcoding
func (inGCS) stored() *blob.ReaderOptions {
	return &blob.ReaderOptions{BeforeRead: func(as func(any) bool) error {
		var object **storage.ObjectHandle
		if as(&object) {
			*object = (*object).ReadCompressed(true)
		}
		return nil
	}}
}

func (inGCS) lacks(err error) bool { return errors.Is(err, storage.ErrObjectNotExist) }

// explain reads the service's own reply: the bucket library takes a denial for a missing object.
func (inGCS) explain(err error) (failure.Class, string) {
	const login = "give the process credentials of Google Cloud: docs/credentials.md"
	var (
		reply *googleapi.Error
		token *auth.Error
	)
	switch {
	case errors.Is(err, storage.ErrBucketNotExist):
		return failure.Missing, "check the bucket's name"
	case errors.As(err, &reply):
	case errors.As(err, &token) && !token.Temporary():
		return failure.Denied, login
	default: // the network, a limit of time, an answer that is none
		return failure.Transient, ""
	}
	switch s := reply.Code; {
	case s == http.StatusUnauthorized:
		return failure.Denied, login
	case s == http.StatusForbidden:
		return failure.Denied, "grant storage.objects.list and storage.objects.get on the bucket " +
			"(roles/storage.objectViewer), and the use of its KMS key"
	case s == http.StatusNotFound:
		return failure.Missing, "check the bucket's name"
	case s == http.StatusTooManyRequests, s == http.StatusServiceUnavailable:
		return failure.Throttled, ""
	case s >= http.StatusInternalServerError, s == http.StatusRequestTimeout, s < http.StatusMultipleChoices:
		return failure.Transient, ""
	}
	return failure.Rejected, "check the URL"
}
