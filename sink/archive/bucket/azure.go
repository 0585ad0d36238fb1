package bucket

import (
	"context"
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

// openAzure opens azblob://container/prefix with the credentials of the environment: AZURE_STORAGE_ACCOUNT and
// AZURE_STORAGE_KEY, a SAS token, a connection string, or the default chain of Azure.
func openAzure(ctx context.Context, u *url.URL, _ Options) (*cloud, error) {
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
	return &cloud{bucket: b, close: func() error { return nil }, limit: withoutRetries, key: azureKey, send: func(
		ctx context.Context, key string, body *io.SectionReader, sum []byte,
	) error {
		_, err := client.NewBlockBlobClient(key).Upload(ctx, streaming.NopCloser(body), &blockblob.UploadOptions{
			TransactionalValidation: azblob.TransferValidationTypeMD5(sum),
			HTTPHeaders:             &azblob.HTTPHeaders{BlobContentMD5: sum, BlobContentType: new(contentType)},
			AccessConditions: &azblob.AccessConditions{
				ModifiedAccessConditions: &azblob.ModifiedAccessConditions{IfNoneMatch: new(azcore.ETagAny)},
			},
		})
		return err
	}}, nil
}

// withoutRetries keeps the client from repeating calls: package bucket does so, for all services alike.
func withoutRetries(ctx context.Context) context.Context {
	return policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
}

func azureKey(o *blob.ListObject) string {
	if raw := (container.BlobItem{}); o.As(&raw) && raw.Name != nil {
		return *raw.Name
	}
	return o.Key
}
