// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"karpenter/cloud"
)

// guard is a policy of clients: a request that changes something is not sent when
// the fence says why not, and is given up when it does meanwhile.
type guard struct{ fence cloud.Fence }

// queries is where Resource Graph is asked, by a POST that changes nothing.
const queries = "/Microsoft.ResourceGraph/resources"

// Do implements policy.Policy.
func (g guard) Do(r *policy.Request) (*http.Response, error) {
	if r.Raw().Method == http.MethodGet || strings.HasSuffix(r.Raw().URL.Path, queries) {
		return r.Next()
	}
	what := r.Raw().Method + " " + r.Raw().URL.Path
	held, release, err := g.fence.Hold(r.Raw().Context())
	if err != nil {
		return nil, stopped{fmt.Errorf("%s is not sent: %w", what, err)}
	}
	defer release() // the SDK has read the answer
	answer, err := r.WithContext(held).Next()
	if err != nil && held.Err() != nil && r.Raw().Context().Err() == nil {
		err = stopped{fmt.Errorf("%s is abandoned: %w", what, context.Cause(held))}
	}
	return answer, err
}

// stopped is an error after which there is no other attempt.
type stopped struct{ error }

// NonRetriable tells the SDK.
func (stopped) NonRetriable() {}

// Unwrap returns why.
func (s stopped) Unwrap() error { return s.error }
