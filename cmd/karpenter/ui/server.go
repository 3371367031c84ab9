// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"karpenter/cmd/karpenter/record"
	"karpenter/cmd/karpenter/top"
)

//go:embed built
var built embed.FS

const (
	mostManifest = 1 << 20          // bytes of a request
	mostOffers   = 200              // offerings of an answer, unless asked for
	stillThere   = 15 * time.Second // how often an idle stream sends a comment
	ending       = 2 * time.Second  // how long requests may take at the end
)

// policy is what the page may load and do: its own files, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Server answers about the Moment that was shown last. It is safe for concurrent use.
type Server struct {
	mu       sync.Mutex
	state    *state
	changed  chan struct{} // closed when state changes
	planning chan struct{} // holds a value while a what-if is planned
}

// NewServer returns a Server that shows nothing yet.
func NewServer() *Server {
	return &Server{changed: make(chan struct{}), planning: make(chan struct{}, 1)}
}

// Show plans for the Moment, and answers about it from then on. One goroutine calls
// Show and Trouble.
func (s *Server) Show(m Moment) {
	before, _ := s.now()
	revision := 1
	if before != nil {
		revision = before.revision + 1
	}
	next := newState(m, revision)
	s.swap(next)
}

// Trouble says of the Moment why it may be out of date; "" = it is not.
func (s *Server) Trouble(why string) {
	before, _ := s.now()
	if before == nil || before.Moment.Trouble == why {
		return
	}
	next := *before
	next.Moment.Trouble, next.revision = why, before.revision+1
	s.swap(&next)
}

func (s *Server) swap(next *state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = next
	close(s.changed)
	s.changed = make(chan struct{})
}

// now returns the state, nil if there is none yet, and what is closed when it changes.
func (s *Server) now() (*state, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.changed
}

// Listen listens on the address, which must be of this machine alone.
func Listen(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%q: want HOST:PORT, such as 127.0.0.1:8080", address)
	}
	if !loopback(host) {
		return nil, fmt.Errorf("%q is not a loopback address: want 127.0.0.1, [::1] or localhost; to see the page from another machine, forward the port with ssh -L", address)
	}
	return net.Listen("tcp", address)
}

// loopback reports whether the host is this machine, by a name that no one else can
// give to an address.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Serve answers until ctx is done.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams end with ctx
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return server.Close()
}

// Handler returns the page and the API. It answers browsers that found it under a
// name of this machine only, so that no other site can have its name point here, and
// no request that another site made.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	all := endpoints()
	for path, e := range all {
		mux.HandleFunc("GET /api/v1/"+path, s.api(e))
	}
	mux.HandleFunc("POST "+planPath, s.whatIf)
	mux.HandleFunc("GET /api/v1/events", s.events)
	paths := slices.Sorted(maps.Keys(all))
	nothing := problem{http.StatusNotFound, "found nothing here; below /api/v1/ there are " + strings.Join(paths, ", ") + ", plan and events"}
	mux.HandleFunc("GET /api/", func(w http.ResponseWriter, _ *http.Request) { fail(w, nothing) })
	files, err := fs.Sub(built, "built")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux.Handle("GET /", http.FileServerFS(files))
	elsewhere := http.NewCrossOriginProtection()
	elsewhere.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fail(w, elsewhereMade) }))
	return guard(elsewhere.Handler(mux))
}

// elsewhereMade is the answer to requests that another site has a browser make.
var elsewhereMade = problem{http.StatusForbidden, "another site made this request"}

// planPath is the only path that has POST, and the only one that has not GET.
const planPath = "/api/v1/plan"

// endpoint is a path of the API.
type endpoint struct {
	answer     func(*state, *http.Request) (any, error)
	parameters []string // of the query
}

// endpoints returns what there is below /api/v1/, by path.
func endpoints() map[string]endpoint {
	return map[string]endpoint{
		"overview":     {answer: func(st *state, _ *http.Request) (any, error) { return st.overview(), nil }},
		"nodes":        {answer: func(st *state, _ *http.Request) (any, error) { return map[string]any{"nodes": st.nodes}, nil }},
		"nodes/{name}": {answer: nodeAnswer},
		"pending":      {answer: func(st *state, _ *http.Request) (any, error) { return st.pending(), nil }},
		"stays":        {answer: func(st *state, _ *http.Request) (any, error) { return st.stays(), nil }},
		"bill":         {billAnswer, []string{"label"}},
		"offerings":    {offeringsAnswer, []string{"limit", "q"}},
		"nodepools":    {answer: nodePoolsAnswer},
		"decisions":    {answer: decisionsAnswer},
	}
}

// check reports parameters that the endpoint does not have.
func (e *endpoint) check(r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem{http.StatusBadRequest, fmt.Sprintf("read the query: %v", err)}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case len(e.parameters) == 0:
			return problem{http.StatusBadRequest, fmt.Sprintf("unknown parameter %q: this path has none", name)}
		case !slices.Contains(e.parameters, name):
			return problem{http.StatusBadRequest, fmt.Sprintf("unknown parameter %q: want %s", name, strings.Join(e.parameters, " or "))}
		case len(query[name]) > 1:
			return problem{http.StatusBadRequest, fmt.Sprintf("%s: want it once", name)}
		}
	}
	return nil
}

// guard refuses requests for other hosts, and sets the headers of all answers.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cache-Control", "no-store")
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !loopback(strings.Trim(host, "[]")) {
			fail(w, problem{http.StatusForbidden, fmt.Sprintf("the request is for host %q: open the page as http://localhost or http://127.0.0.1, with the port", r.Host)})
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && strings.HasPrefix(r.URL.Path, "/api/") {
			fail(w, elsewhereMade)
			return
		}
		if wanted := method(r.URL.Path); r.Method != wanted && !(wanted == http.MethodGet && r.Method == http.MethodHead) {
			h.Set("Allow", wanted)
			fail(w, problem{http.StatusMethodNotAllowed, fmt.Sprintf("method %s: want %s", r.Method, wanted)})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// method returns the one that the path has.
func method(path string) string {
	if path == planPath {
		return http.MethodPost
	}
	return http.MethodGet
}

// problem is an error with its status.
type problem struct {
	status int
	text   string
}

func (p problem) Error() string { return p.text }

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var p problem
	if errors.As(err, &p) {
		status = p.status
	}
	write(w, status, map[string]string{"error": err.Error()})
}

func write(w http.ResponseWriter, status int, answer any) {
	text, err := json.Marshal(answer)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client has disconnected
}

// known returns the state, or the problem that there is none yet.
func (s *Server) known() (*state, error) {
	st, _ := s.now()
	if st == nil {
		return nil, problem{http.StatusServiceUnavailable, "the cluster is being read; try again in a few seconds"}
	}
	return st, nil
}

// api answers a request about the state.
func (s *Server) api(e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		st, err := s.known()
		if err == nil {
			err = e.check(r)
		}
		if err != nil {
			fail(w, err)
			return
		}
		out, err := e.answer(st, r)
		if err != nil {
			fail(w, err)
			return
		}
		write(w, http.StatusOK, out)
	}
}

func nodeAnswer(st *state, r *http.Request) (any, error) {
	d, found := st.detail(r.PathValue("name"))
	if !found {
		return nil, problem{http.StatusNotFound, fmt.Sprintf("found no node %q", r.PathValue("name"))}
	}
	return d, nil
}

func billAnswer(st *state, r *http.Request) (any, error) {
	label := r.URL.Query().Get("label")
	if label == "" {
		label = "team"
	}
	return st.bill(label), nil
}

func offeringsAnswer(st *state, r *http.Request) (any, error) {
	most := mostOffers
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, problem{http.StatusBadRequest, fmt.Sprintf("limit: %q: want how many offerings, as a whole number", text)}
		}
		most = n
	}
	return st.search(r.URL.Query().Get("q"), most), nil
}

func decisionsAnswer(st *state, _ *http.Request) (any, error) {
	kept := st.Record.Decisions
	if kept == nil {
		kept = []record.DecisionEntry{}
	}
	return map[string]any{"cards": st.cards(-1, func(top.Entry) bool { return true }), "record": kept}, nil
}

func nodePoolsAnswer(st *state, _ *http.Request) (any, error) {
	all, err := st.manifests()
	return map[string]any{"nodePools": all}, err
}

// whatIf plans with other NodePools. It changes nothing, and is a POST because the
// manifests are its body. One request is planned at a time.
func (s *Server) whatIf(w http.ResponseWriter, r *http.Request) {
	st, err := s.known()
	if err != nil {
		fail(w, err)
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/yaml" {
		fail(w, problem{http.StatusUnsupportedMediaType, "want NodePools as Content-Type: application/yaml"})
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostManifest))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		fail(w, problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d MiB", mostManifest>>20)})
		return
	case err != nil:
		fail(w, problem{http.StatusBadRequest, fmt.Sprintf("read the request: %v", err)})
		return
	}
	select {
	case s.planning <- struct{}{}:
		defer func() { <-s.planning }()
	case <-r.Context().Done():
		return
	}
	report, err := st.whatIf(text)
	if err != nil {
		fail(w, problem{http.StatusUnprocessableEntity, err.Error()})
		return
	}
	write(w, http.StatusOK, report)
}

// events is a stream of server-sent events: the revision now and whenever it changes.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	idle := time.NewTicker(stillThere)
	defer idle.Stop()
	told := -1
	for {
		st, changed := s.now()
		text := ": waiting\n\n"
		if st != nil && st.revision != told {
			told = st.revision
			text = fmt.Sprintf("event: changed\ndata: {\"revision\":%d}\n\n", told)
		}
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-idle.C:
		}
	}
}
