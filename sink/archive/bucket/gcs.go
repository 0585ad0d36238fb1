package bucket

import (
	"context"
	"io"
	"net/url"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"

	"github.com/tailrace-cdc/replicator/failure"
)

// openGCS opens gs://bucket/prefix with the application default credentials, or without any at an emulator
// (STORAGE_EMULATOR_HOST).
func openGCS(ctx context.Context, u *url.URL, _ Options) (*cloud, error) {
	client, err := storage.NewClient(ctx)
	if err != nil {
		return nil, refused(failure.Denied, "run `gcloud auth application-default login`, set "+
			"GOOGLE_APPLICATION_CREDENTIALS, or give the pod a service account", "%w", err)
	}
	// Calls that change nothing are repeated by package bucket, for all services alike.
	client.SetRetry(storage.WithPolicy(storage.RetryNever))
	b, err := gcsblob.OpenBucket(ctx, nil, u.Host, &gcsblob.Options{Client: client})
	if err != nil {
		return nil, err
	}
	bucket := client.Bucket(u.Host)
	return &cloud{bucket: b, close: client.Close, key: gcsKey, send: func(
		ctx context.Context, key string, body *io.SectionReader, sum []byte,
	) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w := bucket.Object(key).If(storage.Conditions{DoesNotExist: true}).NewWriter(ctx)
		w.ChunkSize = 0 // one request; the default is a session of several, and buffers 16 MB
		w.MD5 = sum
		w.ContentType = contentType
		if _, err := io.Copy(w, body); err != nil {
			cancel() // before Close, which would complete the upload
			_ = w.Close()
			return err
		}
		return w.Close()
	}}, nil
}

func gcsKey(o *blob.ListObject) string {
	if raw := (storage.ObjectAttrs{}); o.As(&raw) {
		return raw.Name
	}
	return o.Key
}
