// SPDX-License-Identifier: Apache-2.0

package azurefake

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// request is a call with the parts of its path.
type request struct {
	*http.Request
	pool, name string
	body       []byte
}

// problem is an error of Azure.
type problem struct {
	status        int
	code, message string
	retryAfter    string
}

func (p *problem) Error() string { return p.code + ": " + p.message }

func refuse(status int, code, format string, args ...any) *problem {
	return &problem{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// collection is the part of paths below which machines are.
const collection = "machines"

// apiVersion is the version of AKS' API that has machines.
const apiVersion = "2025-10-02-preview"

// Versions of the other APIs.
const (
	skusVersion           = "2021-07-01"
	usagesVersion         = "2025-04-01"
	computeVersion        = "2025-04-01"
	galleriesVersion      = "2025-03-03"
	graphVersion          = "2024-04-01"
	encryptionSetsVersion = "2025-01-02"
	subnetsVersion        = "2025-05-01"
)

// Handler returns the Cloud's HTTP API.
func (c *Cloud) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.settleLocked()
		status, headers, answer, err := c.serveLocked(r)
		if err != nil {
			if err.retryAfter != "" {
				w.Header().Set("Retry-After", err.retryAfter)
			}
			status, answer = err.status, map[string]any{"error": map[string]any{"code": err.code, "message": err.message}}
		}
		for key, value := range headers {
			w.Header().Set(key, value)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		if answer != nil {
			_ = json.NewEncoder(w).Encode(answer) // to memory, or to a client that is gone
		}
	})
}

// handler answers a call: status, headers, body.
type handler func(*request) (int, map[string]string, any, *problem)

func (c *Cloud) serveLocked(r *http.Request) (int, map[string]string, any, *problem) {
	if !authorized(r) {
		return 0, nil, nil, refuse(http.StatusUnauthorized, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
	}
	c.address = "https://" + r.Host
	if r.URL.Query().Get("api-version") == "" {
		return 0, nil, nil, refuse(http.StatusBadRequest, "MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required for all requests.")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidRequestContent", "%v", err)
	}
	call := &request{Request: r, body: body}
	operation, version, handle := c.routeLocked(call)
	if handle == nil {
		return 0, nil, nil, refuse(http.StatusNotFound, "InvalidResourceType", "There is no resource at '%s %s'.", r.Method, r.URL.Path)
	}
	if got := r.URL.Query().Get("api-version"); got != version {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidApiVersionParameter", "The api-version '%s' is invalid.", got)
	}
	c.calls[operation]++
	if changes(r) {
		defer func(at time.Time) { c.recordLocked(entry(r, body, at)) }(c.config.Clock.Now())
	}
	if f := next(c.failures, operation); f != nil {
		return 0, nil, nil, f
	}
	status, headers, answer, refused := handle(call)
	if f := next(c.lost, operation); f != nil {
		return 0, nil, nil, f
	}
	return status, headers, answer, refused
}

// next takes the first failure of the operation, nil if there is none.
func next(failures map[string][]Failure, operation string) *problem {
	queue := failures[operation]
	if len(queue) == 0 {
		return nil
	}
	failures[operation] = queue[1:]
	return &problem{queue[0].Status, queue[0].Code, queue[0].Message, queue[0].RetryAfter}
}

// routeLocked finds the operation of a call, and the version of its API. Names in
// paths are compared without regard to case.
func (c *Cloud) routeLocked(r *request) (operation, version string, handle handler) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.Method == http.MethodGet {
		for _, list := range c.listsLocked() {
			if rest, ok := below(parts, list.path); ok && len(rest) == 0 {
				return list.operation, list.version, list.handle
			}
		}
		for _, of := range []service{machines, compute, network} {
			if rest, ok := below(parts, c.provider(of.name, "operations")); ok && len(rest) == 1 {
				r.name = rest[0]
				return "GET operation", of.version, c.getOperation
			}
		}
		if operation, version, handle = c.things(parts); handle != nil {
			return operation, version, handle
		}
	}
	if operation, version, handle = c.ownRoute(r, parts); handle != nil {
		return operation, version, handle
	}
	operation, handle = c.machineRoute(r, parts)
	return operation, apiVersion, handle
}

// provider is the path of something that a resource provider has in the region.
func (c *Cloud) provider(name, what string) []string {
	return []string{"subscriptions", c.config.Subscription, "providers", name, "locations", c.config.Region, what}
}

// machineRoute finds the operations on machines.
func (c *Cloud) machineRoute(r *request, parts []string) (operation string, handle handler) {
	rest, ok := below(parts, []string{
		"subscriptions", c.config.Subscription, "resourceGroups", c.config.ResourceGroup,
		"providers", "Microsoft.ContainerService", "managedClusters", c.config.Cluster, "agentPools",
	})
	if !ok || len(rest) == 0 {
		return "", nil
	}
	r.pool = strings.ToLower(rest[0])
	switch {
	case len(rest) == 2 && strings.EqualFold(rest[1], "deleteMachines") && r.Method == http.MethodPost:
		return "POST deleteMachines", c.deleteMachines
	case len(rest) == 2 && strings.EqualFold(rest[1], collection) && r.Method == http.MethodGet:
		return "LIST machine", c.listMachines
	case len(rest) == 3 && strings.EqualFold(rest[1], collection):
		r.name = rest[2]
		switch r.Method {
		case http.MethodGet:
			return "GET machine", c.getMachine
		case http.MethodPut:
			if r.Header.Get(batchHeader) != "" {
				return "PUT batch", c.putBatch
			}
			return "PUT machine", c.putMachine
		}
	}
	return "", nil
}

// below returns the parts after a prefix.
func below(parts, prefix []string) (rest []string, ok bool) {
	if len(parts) < len(prefix) {
		return nil, false
	}
	for i := range prefix {
		if !strings.EqualFold(parts[i], prefix[i]) {
			return nil, false
		}
	}
	return parts[len(prefix):], true
}

// operation is something that takes time.
type operation struct {
	done  time.Time
	error *problem // nil = it succeeds
}

// service is a resource provider, and the version of its API.
type service struct{ name, version string }

// The services that have operations.
var (
	machines = service{"Microsoft.ContainerService", apiVersion}
	compute  = service{"Microsoft.Compute", computeVersion}
	network  = service{"Microsoft.Network", subnetsVersion}
)

// startLocked begins an operation of a service, and returns the headers that tell
// clients where to ask for its status.
func (c *Cloud) startLocked(of service, takes time.Duration, err *problem) map[string]string {
	c.serial++
	id := fmt.Sprintf("00000000-0000-0000-0000-%012d", c.serial)
	c.operations[id] = &operation{done: c.config.Clock.Now().Add(takes), error: err}
	url := fmt.Sprintf("%s/subscriptions/%s/providers/%s/locations/%s/operations/%s?api-version=%s",
		c.address, c.config.Subscription, of.name, c.config.Region, id, of.version)
	return map[string]string{"Azure-AsyncOperation": url, "Retry-After": "1"}
}

func (c *Cloud) getOperation(r *request) (int, map[string]string, any, *problem) {
	o, ok := c.operations[r.name]
	if !ok {
		return 0, nil, nil, refuse(http.StatusNotFound, "NotFound", "The operation '%s' was not found.", r.name)
	}
	answer := map[string]any{"name": r.name, "status": "InProgress"}
	if !c.config.Clock.Now().Before(o.done) {
		answer["status"] = "Succeeded"
		if o.error != nil {
			answer["status"] = "Failed"
			answer["error"] = map[string]any{"code": o.error.code, "message": o.error.message}
		}
	}
	return http.StatusOK, nil, answer, nil
}
