// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// endless is an Azure that never ends to make network interfaces, until it is mended.
type endless struct {
	policy.Transporter
	mended *bool
}

// Do implements policy.Transporter.
func (e endless) Do(r *http.Request) (*http.Response, error) {
	answer, err := e.Transporter.Do(r)
	if err != nil || *e.mended || !strings.Contains(r.URL.Path, "/networkInterfaces/") && !strings.Contains(r.URL.Path, "/operations/") {
		return answer, err
	}
	text, err := io.ReadAll(answer.Body)
	for was, is := range map[string]string{`"provisioningState":"Succeeded"`: `"provisioningState":"Updating"`, `"status":"Succeeded"`: `"status":"InProgress"`} {
		text = bytes.ReplaceAll(text, []byte(was), []byte(is))
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, err
}

// TestLaunchIsBounded: Azure accepts a network interface and never makes it. The launch ends, and
// does not keep the next one from being tried, which finds what was made.
func TestLaunchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOwn(t)
		mended := false
		r.through = func(to policy.Transporter) policy.Transporter { return endless{to, &mended} }
		r.restart()
		claim, began := r.claim("a"), time.Now()
		if _, err := r.Create(t.Context(), claim); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("create: %v", err)
		}
		if took := time.Since(began); took < longestLaunch || took > longestLaunch+time.Minute {
			t.Errorf("it took %s", took)
		}
		mended = true
		r.clock.Step(time.Minute)
		r.launch(claim)
		r.holds("afterwards", []string{"aks-a"}, []string{"aks-a"})
	})
}
