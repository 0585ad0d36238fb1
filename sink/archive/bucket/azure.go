package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	azblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"github.com/tailrace-cdc/replicator/failure"
)

// openAzure opens azblob://container/prefix with the credentials of the environment:
// AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, a SAS token, a connection string, or the default
// chain of Azure.
func openAzure(ctx context.Context, u *url.URL, _ Options) (backend, error) {
	opener := azureblob.URLOpener{
		MakeClient: azureblob.NewDefaultClient, ServiceURLOptions: *azureblob.NewDefaultServiceURLOptions(),
	}
	b, err := opener.OpenBucketURL(ctx, u)
	if err != nil {
		return nil, refused(failure.Denied, "set AZURE_STORAGE_ACCOUNT, and AZURE_STORAGE_KEY or what Azure's default "+
			"chain of credentials takes", "%w", err)
	}
	var client *container.Client
	if !b.As(&client) {
		return nil, refused(failure.Fatal, "", "the Go CDK has another client of Azure than expected")
	}
	return &inAzure{b, client}, nil
}

// inAzure is a container of Azure Blob Storage.
type inAzure struct {
	opened *blob.Bucket
	client *container.Client
}

func (a *inAzure) put(ctx context.Context, key string, body *io.SectionReader, sum []byte) ([]byte, error) {
	out, err := a.client.NewBlockBlobClient(key).Upload(once(ctx), streaming.NopCloser(body), &blockblob.UploadOptions{
		TransactionalValidation: azblob.TransferValidationTypeMD5(sum),
		HTTPHeaders:             &azblob.HTTPHeaders{BlobContentMD5: sum, BlobContentType: new(contentType)},
		AccessConditions: &azblob.AccessConditions{
			ModifiedAccessConditions: &azblob.ModifiedAccessConditions{IfNoneMatch: new(azcore.ETagAny)},
		},
	})
	return out.ContentMD5, err
}

func (a *inAzure) head(ctx context.Context, key string) (stored, error) {
	out, err := a.client.NewBlobClient(key).GetProperties(once(ctx), nil)
	if err != nil {
		return stored{}, err
	}
	if out.ETag == nil || *out.ETag == "" || out.ContentLength == nil || out.BlobType == nil {
		return stored{}, fmt.Errorf("%w: it has no ETag, no length, or no type of a blob", errNotStore)
	}
	return stored{size: *out.ContentLength, sum: out.ContentMD5, version: string(*out.ETag)}, nil
}

func (a *inAzure) list(ctx context.Context, q query) (page, error) {
	in := &container.ListBlobsFlatOptions{Prefix: &q.prefix, MaxResults: new(int32(q.size))}
	if q.token != "" {
		in.Marker = &q.token
	}
	out, err := a.client.NewListBlobsFlatPager(in).NextPage(once(ctx))
	if err != nil {
		return page{}, err
	}
	if out.Segment == nil { // an empty body
		return page{}, fmt.Errorf("%w: it is no listing of a container", errNotStore)
	}
	var p page
	for _, o := range out.Segment.BlobItems {
		if o == nil || o.Name == nil || o.Properties == nil || o.Properties.ContentLength == nil {
			return page{}, fmt.Errorf("%w: it lists a blob without name or size", errNotStore)
		}
		p.objects = append(p.objects, Info{Name: *o.Name, Size: *o.Properties.ContentLength})
	}
	if out.NextMarker != nil {
		p.next = *out.NextMarker
	}
	return p, nil
}

func (a *inAzure) read(ctx context.Context, key string, of stored, at, n int64) (io.ReadCloser, error) {
	out, err := a.client.NewBlobClient(key).DownloadStream(once(ctx), &azblob.DownloadStreamOptions{
		Range: azblob.HTTPRange{Offset: at, Count: n},
	})
	if err != nil {
		return nil, err
	}
	if out.ETag == nil || string(*out.ETag) != of.version || out.Body == nil {
		return nil, errors.Join(fmt.Errorf("%w: it is of another object", errNotStore), closeBody(out.Body))
	}
	return out.Body, nil
}

// lifecycle makes no call: the rules belong to the storage account, which is managed by another
// service with other rights.
func (a *inAzure) lifecycle(context.Context) ([]expiry, error) { return nil, ErrNoLifecycle }

func (a *inAzure) close() error { return a.opened.Close() }

// once keeps the client from repeating a call: package bucket does so, for all services alike.
func once(ctx context.Context) context.Context {
	return policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
}
