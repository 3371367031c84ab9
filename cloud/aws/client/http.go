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

// HTTP is the SDK's HTTP client with a fix for one of its faults: after the
// response has arrived, the request body is closed, and its WriteTo fails
// instead of writing nothing. If the transport is still looking for the end of
// the body then, it closes the connection, and the response cannot be read.
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
