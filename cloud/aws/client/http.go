// SPDX-License-Identifier: Apache-2.0

package client

import (
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go/middleware"

	"karpenter/cloud"
)

// timeout is how long one HTTP request may take.
const timeout = 4 * time.Minute

// HTTP is an HTTP client of the SDK's, without one of its faults: a request's body
// that is closed, as it is once the answer has come, fails when it is asked to
// write itself, instead of having nothing to write. If that is while the
// transport still looks for the body's end, it closes the connection, and the
// answer cannot be read.
type HTTP struct{ client aws.HTTPClient }

// NewHTTP returns an HTTP client with the settings of the given one, such as
// trusted certificates; nil means the SDK's default client.
func NewHTTP(client aws.HTTPClient) HTTP {
	if client == nil {
		client = awshttp.NewBuildableClient()
	}
	if own, ok := client.(*awshttp.BuildableClient); ok {
		client = own.WithTimeout(timeout)
	}
	return HTTP{client}
}

// Do sends the request.
func (h HTTP) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		body := struct{ io.ReadCloser }{r.Body} // which can be read only
		r.Body = body
		if fence, ok := middleware.GetStackValue(r.Context(), fenceKey{}).(cloud.Fence); ok {
			r.Body = fencedBody{body, fence}
		}
	}
	return h.client.Do(r)
}
