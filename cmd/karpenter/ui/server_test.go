// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"

	"karpenter/api/scheme"
	"karpenter/cmd/karpenter/plan"
	"karpenter/cmd/karpenter/record"
	"karpenter/cmd/karpenter/recording"
	"karpenter/cmd/karpenter/top"
	"karpenter/scenario"
)

const small = `
type m.large cpu=2 mem=8Gi pods=29 zones=a,b spot=0.03 on-demand=0.096,b:0.1!
type m.xlarge cpu=4 mem=16Gi pods=58 zones=a,b spot=0.06 on-demand=0.192
pool general
pool ci limits=cpu:4 requires="zone In [b]"
node n1 pool=general type=m.large zone=a ct=spot
node n2 pool=ci type=m.xlarge zone=b ct=on-demand
node own cpu=4 mem=8Gi
pods shop/web-1..2 cpu=500m mem=1Gi on=n1
pods shop/api-1 cpu=3 mem=4Gi on=n2
pods shop/big-1..2 cpu=64 mem=1Gi
decide now=2026-01-01T12:00:00Z
`

func moment(t *testing.T, text string) Moment {
	t.Helper()
	s, err := scenario.Read(strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return Moment{Title: "test", Source: "snapshot", Situation: s}
}

func serve(t *testing.T, text string) (*Server, *httptest.Server) {
	t.Helper()
	s := NewServer()
	if text != "" {
		s.Show(moment(t, text))
	}
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	return s, h
}

// ask sends a request that edit may change, and returns the answer and its body.
func ask(t *testing.T, method, url, body string, edit func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(r)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a, string(text)
}

// paths are all that can be read.
func paths() []string {
	return []string{"/", "/app.js", "/style.css", "/api/v1/overview", "/api/v1/nodes", "/api/v1/nodes/n1", "/api/v1/pending", "/api/v1/stays",
		"/api/v1/bill", "/api/v1/offerings", "/api/v1/nodepools", "/api/v1/decisions"}
}

// TestUIIsSafe: every answer has the headers that keep other sites out, no method
// writes, and requests for another host or of another site are rejected.
func TestUIIsSafe(t *testing.T) {
	_, h := serve(t, small)
	for _, path := range paths() {
		a, body := ask(t, "GET", h.URL+path, "", nil)
		csp := a.Header.Get("Content-Security-Policy")
		if a.StatusCode != http.StatusOK || !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") ||
			a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("X-Frame-Options") != "DENY" || a.Header.Get("Cross-Origin-Resource-Policy") != "same-origin" ||
			a.Header.Get("Access-Control-Allow-Origin") != "" || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %s, %v: %.200s", path, a.Status, a.Header, body)
		}
		if strings.HasPrefix(path, "/api/") && (!json.Valid([]byte(body)) || a.Header.Get("Content-Type") != "application/json") {
			t.Errorf("%s is no JSON: %.200s", path, body)
		}
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if a, _ := ask(t, method, h.URL+path, "", nil); a.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %s", method, path, a.Status)
			}
		}
		for _, host := range []string{"evil.example", "evil.example:80", "localhost.evil.example", "10.0.0.1", "127.0.0.1.evil.example", ""} {
			a, _ := ask(t, "GET", h.URL+path, "", func(r *http.Request) { r.Host = host; r.URL.Path = path })
			if host != "" && a.StatusCode != http.StatusForbidden {
				t.Errorf("%s as host %q: %s", path, host, a.Status)
			}
		}
		for _, host := range []string{"localhost:9999", "LOCALHOST", "127.0.0.1", "[::1]:80"} {
			if a, _ := ask(t, "GET", h.URL+path, "", func(r *http.Request) { r.Host = host }); a.StatusCode != http.StatusOK {
				t.Errorf("%s as host %q: %s", path, host, a.Status)
			}
		}
	}
	if a, _ := ask(t, "GET", h.URL+"/api/v1/nodes", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }); a.StatusCode != http.StatusForbidden {
		t.Errorf("a request of another site: %s", a.Status)
	}
	if a, body := ask(t, "DELETE", h.URL+"/api/v1/nodes", "", nil); a.Header.Get("Allow") != "GET" || !strings.Contains(body, `"error"`) {
		t.Errorf("DELETE: %v %s", a.Header, body)
	}
	if a, body := ask(t, "GET", h.URL+planPath, "", nil); a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "POST" || !strings.Contains(body, `"error"`) {
		t.Errorf("GET of the plan: %s %v %s", a.Status, a.Header, body)
	}
	if a, body := ask(t, "GET", h.URL+"/api/v1/nothing", "", nil); a.StatusCode != http.StatusNotFound || !strings.Contains(body, `"error"`) {
		t.Errorf("an unknown path: %s %s", a.Status, body)
	}
	yaml := func(r *http.Request) { r.Header.Set("Content-Type", "application/yaml") }
	for name, c := range map[string]struct {
		body string
		edit func(*http.Request)
		want int
	}{
		"another site": {"", func(r *http.Request) { yaml(r); r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
		"a form":       {"a=b", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"too much":     {strings.Repeat("a", mostManifest+1), yaml, http.StatusRequestEntityTooLarge},
		"no NodePool":  {"kind: Pod\napiVersion: v1\n", yaml, http.StatusUnprocessableEntity},
		"no YAML":      {"{", yaml, http.StatusUnprocessableEntity},
		"no origin":    {"", func(r *http.Request) { yaml(r); r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"nothing":      {"", yaml, http.StatusUnprocessableEntity},
		"deep YAML":    {strings.Repeat("[", 200_000), yaml, http.StatusUnprocessableEntity},
		"many aliases": {"a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", yaml, http.StatusUnprocessableEntity},
		"binary":       {"\x00\xff\xfe", yaml, http.StatusUnprocessableEntity},
	} {
		a, body := ask(t, "POST", h.URL+"/api/v1/plan", c.body, c.edit)
		var answer struct{ Error string }
		if err := json.Unmarshal([]byte(body), &answer); a.StatusCode != c.want || err != nil || answer.Error == "" {
			t.Errorf("%s: %s: %s, want %d", name, a.Status, body, c.want)
		}
	}
}

// TestUIListensOnLoopbackOnly: no address of another network is listened on.
func TestUIListensOnLoopbackOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "10.1.2.3:80", "example.com:80", "127.0.0.1", ""} {
		if l, err := Listen(address); err == nil {
			t.Errorf("%q: listens on %s", address, l.Addr())
			_ = l.Close()
		}
	}
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

// TestUIAnswers holds the answers about a small situation against what is in it.
func TestUIAnswers(t *testing.T) {
	_, h := serve(t, small)
	get := func(path string, into any) {
		t.Helper()
		a, body := ask(t, "GET", h.URL+"/api/v1/"+path, "", nil)
		if err := json.Unmarshal([]byte(body), into); err != nil || a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v: %s", path, a.Status, err, body)
		}
	}
	var o overview
	get("overview", &o)
	if o.Nodes != 2 || o.Foreign != 1 || o.CostPerHour != 0.222 || o.CostPerMonth != 0.222*730 || o.Waiting != 2 || o.NoPlace != 2 || o.Revision != 1 || o.Pods != 3 {
		t.Errorf("overview: %+v", o)
	}
	var nodes struct{ Nodes []node }
	get("nodes", &nodes)
	if len(nodes.Nodes) != 3 || nodes.Nodes[0].Pods != 2 || nodes.Nodes[0].CPU != (amount{2000, 1000}) || !slices.Equal(nodes.Nodes[0].Shares, []int{250, 250}) {
		t.Errorf("nodes: %+v", nodes)
	}
	var detail nodeDetail
	get("nodes/n2", &detail)
	if len(detail.List) != 1 || detail.List[0].Name != "api-1" || detail.List[0].MilliCPU != 3000 || detail.Explained.Node.Name != "n2" {
		t.Errorf("node: %+v", detail)
	}
	var p pending
	get("pending", &p)
	if p.Waiting != 2 || len(p.Refused) != 1 || len(p.Refused[0].Pools) != 2 {
		t.Errorf("pending: %+v", p)
	}
	var s struct {
		Groups      []stayGroup
		CostPerHour float64
	}
	get("stays", &s)
	sum := 0.0
	for _, g := range s.Groups {
		sum += g.CostPerHour
	}
	if s.CostPerHour != 0.222 || sum < 0.2219999 || sum > 0.2220001 {
		t.Errorf("stays: %v of %+v", sum, s)
	}
	var found offeringList
	get("offerings?q=SOLD-out+m.large", &found)
	if found.Total != 8 || found.Matched != 1 || found.Offerings[0].Zone != "b" || found.Offerings[0].Available || found.Offerings[0].CostPerHour != 0.1 {
		t.Errorf("offerings: %+v", found)
	}
	get("offerings?q=spot+m.large", &found)
	if found.Matched != 2 || fmt.Sprint(found.Offerings[0].Pools, found.Offerings[1].Pools) != "[general] [general ci]" {
		t.Errorf("offerings of Spot: %+v", found)
	}
	get("offerings?limit=0", &found)
	if found.Matched != 8 || len(found.Offerings) != 0 {
		t.Errorf("no offerings: %+v", found)
	}
	for query, want := range map[string]string{
		"offerings?limit=x": "whole number", "offerings?limit=-1": "whole number", "offerings?limit=1&limit=2": "limit: want it once", "offerings?query=x": "want limit or q",
		"offerings?q=%zz": "read the query", "bill?lable=team": "want label", "nodes?limit=1": "this path has none",
	} {
		if a, body := ask(t, "GET", h.URL+"/api/v1/"+query, "", nil); a.StatusCode != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s: %s %s, want %s", query, a.Status, body, want)
		}
	}
	if a, _ := ask(t, "GET", h.URL+"/api/v1/nodes/none", "", nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown node: %s", a.Status)
	}
	var pools struct{ NodePools []manifest }
	get("nodepools", &pools)
	if len(pools.NodePools) != 2 || pools.NodePools[0] != (manifest{Name: "ci"}) {
		t.Errorf("NodePools: %+v", pools)
	}
}

// TestUIWithoutNodes: a cluster in which nothing runs yet has pages, too.
func TestUIWithoutNodes(t *testing.T) {
	_, h := serve(t, "type m cpu=4 mem=16Gi pods=58 zones=a on-demand=0.2\npool general\npods web-1..3 cpu=1 mem=1Gi\n")
	for _, path := range paths() {
		if a, body := ask(t, "GET", h.URL+path, "", nil); a.StatusCode != http.StatusOK && path != "/api/v1/nodes/n1" {
			t.Errorf("%s: %s %s", path, a.Status, body)
		}
	}
}

// TestUIIsDocumented: docs/ui.md has every field of the answers.
func TestUIIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/ui.md")
	if err != nil {
		t.Fatal(err)
	}
	var check func(reflect.Type)
	check = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Slice, reflect.Pointer:
			check(of.Elem())
		case reflect.Struct:
			for _, field := range reflect.VisibleFields(of) {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if name != "" && !strings.Contains(string(text), "`"+name+"`") {
					t.Errorf("%s has the field %s, which docs/ui.md does not have", of, name)
				}
				if name != "" && field.Type.PkgPath() != "time" && !strings.Contains(field.Type.String(), "plan.") && !strings.Contains(field.Type.String(), "explain.") {
					check(field.Type)
				}
			}
		}
	}
	for _, answer := range []any{overview{}, nodeDetail{}, pending{}, stayGroup{}, Bill{}, offeringList{}, manifest{}, card{}} {
		check(reflect.TypeOf(answer))
	}
	for path := range endpoints() {
		if path = strings.Replace(path, "{name}", "NAME", 1); !strings.Contains(string(text), "`GET "+path) {
			t.Errorf("docs/ui.md does not have the path %s", path)
		}
	}
}

// TestUIWhatIf: the answer is the report of karpenter plan -f.
func TestUIWhatIf(t *testing.T) {
	s, h := serve(t, small)
	const pool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
`
	a, body := ask(t, "POST", h.URL+"/api/v1/plan", pool, func(r *http.Request) { r.Header.Set("Content-Type", "application/yaml") })
	var got plan.Report
	if err := json.Unmarshal([]byte(body), &got); err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s %v: %s", a.Status, err, body)
	}
	m := &plan.Manifests{}
	if err := m.Read("x", strings.NewReader(pool)); err != nil {
		t.Fatal(err)
	}
	st, _ := s.now()
	want, err := plan.With(st.Situation.Snapshot, m, nil, decider(st.Situation.Policy))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != strings.TrimSpace(body) || len(got.Changes) != 1 || len(got.Changes[0].Drifted) != 1 {
		t.Errorf("it says\n%s\nwant\n%s", body, text)
	}
}

// TestUIDecisions: what happened at one time is one card, the newest card comes first,
// and its entries keep their order.
func TestUIDecisions(t *testing.T) {
	m := moment(t, small)
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	m.Happened = []top.Entry{{At: at, Kind: top.PodsKind, Text: "one"}, {At: at, Kind: top.Launched, Text: "two"}, {At: at.Add(time.Second), Kind: top.PodsKind, Text: "three"}}
	s := NewServer()
	s.Show(m)
	st, _ := s.now()
	if got := fmt.Sprint(st.cards(-1, func(top.Entry) bool { return true })); got != "[{2026-01-01 12:00:01 +0000 UTC [{pods three}]} {2026-01-01 12:00:00 +0000 UTC [{pods one} {launch two}]}]" {
		t.Errorf("the cards are %s", got)
	}
	if last := st.overview().Last; len(last) != 1 || len(last[0].Entries) != 1 || last[0].Entries[0].Text != "two" {
		t.Errorf("the overview has %v", last)
	}
}

// TestUIEvents: the stream tells the revision that is shown, and the next one at once.
func TestUIEvents(t *testing.T) {
	s, h := serve(t, "")
	if a, body := ask(t, "GET", h.URL+"/api/v1/overview", "", nil); a.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("before anything is shown: %s %s", a.Status, body)
	}
	s.Show(moment(t, small))
	r, err := http.NewRequestWithContext(t.Context(), "GET", h.URL+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	lines := bufio.NewScanner(a.Body)
	read := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data: ") {
				if lines.Text() != "data: "+want {
					t.Errorf("the stream says %q, want %s", lines.Text(), want)
				}
				return
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
	}
	read(`{"revision":1}`)
	s.Show(moment(t, small))
	read(`{"revision":2}`)
	s.Trouble("lost")
	read(`{"revision":3}`)
	if _, body := ask(t, "GET", h.URL+"/api/v1/overview", "", nil); !strings.Contains(body, `"trouble":"lost"`) {
		t.Errorf("the overview does not tell the trouble: %.200s", body)
	}
	s.Trouble("lost") // no change
	s.Trouble("")
	read(`{"revision":4}`)
}

// TestUIIsBuiltOfItsSources: make ui was run after the last change of web/, and no one
// changed what it made.
func TestUIIsBuiltOfItsSources(t *testing.T) {
	sources := []string{"build.mjs", "package-lock.json", "package.json"}
	for _, name := range names(t, filepath.Join("web", "src")) {
		sources = append(sources, "src/"+name)
	}
	made := slices.DeleteFunc(names(t, "built"), func(n string) bool { return n == "digests.txt" })
	want := fmt.Sprintf("sources %s\nbuilt %s\n", digest(t, "web", sources), digest(t, "built", made))
	if got, err := os.ReadFile(filepath.Join("built", "digests.txt")); err != nil || string(got) != want {
		t.Errorf("built/ is not of the sources in web/: run make ui (%v)\nit is\n%swant\n%s", err, got, want)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out // sorted
}

func digest(t *testing.T, dir string, files []string) string {
	t.Helper()
	sum := sha256.New()
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s\n%s\n", name, text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// TestUIRecord: decisions come with what was predicted and what happened, and the bill
// with the savings, whose causes add up to the cent.
func TestUIRecord(t *testing.T) {
	objects := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(objects), scheme.AddToScheme(objects), apiextensionsv1.AddToScheme(objects)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("../../../docs/recorded/simulated.recording")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := recording.Read(f, objects)
	if err != nil {
		t.Fatal(err)
	}
	m := moment(t, small)
	if m.Record, err = record.Load(t.Context(), r.At(r.Ended()), "kube-system", r.Ended()); err != nil {
		t.Fatal(err)
	}
	s := NewServer()
	s.Show(m)
	h := httptest.NewServer(s.Handler())
	defer h.Close()
	var decisions struct{ Record []record.DecisionEntry }
	_, body := ask(t, "GET", h.URL+"/api/v1/decisions", "", nil)
	if err := json.Unmarshal([]byte(body), &decisions); err != nil {
		t.Fatal(err)
	}
	launched, removed := 0, 0
	for _, d := range decisions.Record {
		switch a := d.Actual; {
		case a == nil:
		case d.Kind == record.Provision && a.Ready > 0 && a.Wait > 0 && a.Launched == d.Predicted.Launched && len(d.Launches) > 0:
			launched++
		case d.Kind != record.Provision && a.Removed > 0 && a.Savings == d.Predicted.Savings && len(d.Removes) > 0:
			removed++
		}
	}
	if launched < 2 || removed < 2 {
		t.Errorf("%d launches and %d removals came out as predicted: %s", launched, removed, body)
	}
	var bill Bill
	_, body = ask(t, "GET", h.URL+"/api/v1/bill", "", nil)
	if err := json.Unmarshal([]byte(body), &bill); err != nil {
		t.Fatal(err)
	}
	if bill.Costs == nil || bill.Costs.Cost <= 0 || bill.Savings == nil || len(bill.Savings.Causes) != 5 {
		t.Fatalf("the bill has no savings: %s", body)
	}
	cents := 0.0
	for _, c := range bill.Savings.Causes {
		cents += math.Round(100 * c.Saved)
	}
	if cents != math.Round(100*bill.Savings.Saved) {
		t.Errorf("the causes add up to %v cents: %s", cents, body)
	}
}

// TestPicturesAreCurrent: what the documents show was drawn from the page and the
// recordings as they are.
func TestPicturesAreCurrent(t *testing.T) {
	const root = "../../.."
	text, err := os.ReadFile(filepath.Join(root, "docs", "screens", "ui-drawn-from.txt"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		n++
		file, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(file)); got != sum {
			t.Errorf("%s has changed since docs/screens/ui/ were drawn: run make ui-test UI=-rewrite, and look at them", name)
		}
	}
	if n != 4 {
		t.Errorf("%d files, want the page and 3 recordings", n)
	}
}
