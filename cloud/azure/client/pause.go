// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// pause is a policy of clients: if Azure asks to wait, no request of the kind is sent until then,
// be it another one or a later one. Azure counts requests that it rejects, too. What is not
// sent gets Azure's answer, so that the SDK waits, or gives up if that takes more than a minute.
type pause struct {
	mu    sync.Mutex
	until map[string]time.Time // by kind of request, of which there are a few
}

// longestPause is how long requests of a kind wait at most, whatever Azure asks.
const longestPause = time.Hour

// Do implements policy.Policy.
func (p *pause) Do(r *policy.Request) (*http.Response, error) {
	kind := strings.Join(described(r.Raw(), nil)[:2], " ")
	p.mu.Lock()
	left := time.Until(p.until[kind])
	p.mu.Unlock()
	if left > 0 {
		return unsent(r.Raw(), kind, left), nil
	}
	answer, err := r.Next()
	if err == nil && answer.StatusCode == http.StatusTooManyRequests {
		p.mu.Lock()
		defer p.mu.Unlock()
		if until := time.Now().Add(min(retryAfter(answer), longestPause)); until.After(p.until[kind]) {
			p.until[kind] = until
		}
	}
	return answer, err
}

// retryAfter is how long Azure asks to wait, 0 if it does not say.
func retryAfter(answer *http.Response) time.Duration {
	text := answer.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return time.Until(at)
	}
	return 0
}

// unsent is the answer to a request that is not sent.
func unsent(r *http.Request, kind string, left time.Duration) *http.Response {
	seconds := strconv.Itoa(int(math.Ceil(left.Seconds())))
	body := fmt.Sprintf(`{"error":{"code":"TooManyRequests","message":"not sent: Azure asked to wait %s s with requests %s"}}`, seconds, kind)
	return &http.Response{
		Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {seconds}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
