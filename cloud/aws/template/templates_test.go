// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/cloud"
	"karpenter/cloud/aws/client"
)

// account is EC2 with launch templates only. Each call takes a tenth of a
// second, and is noted as "create", "describe", "list" or "delete".
type account struct {
	mu    sync.Mutex
	made  map[string]*ec2.CreateLaunchTemplateInput // by name
	ids   map[string]string                         // name by ID
	calls []string
	fail  map[string]error // by call, once
	page  int              // templates per page of a list; 0 = all
}

func newAccount() *account {
	return &account{made: map[string]*ec2.CreateLaunchTemplateInput{}, ids: map[string]string{}, fail: map[string]error{}}
}

func (a *account) call(ctx context.Context, name string) error {
	select {
	case <-time.After(time.Second / 10):
	case <-ctx.Done():
		return ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, name)
	err := a.fail[name]
	delete(a.fail, name)
	return err
}

// count returns the calls since the last time.
func (a *account) count() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]int{}
	for _, name := range a.calls {
		out[name]++
	}
	a.calls = nil
	return out
}

func (a *account) names() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for name := range a.made {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func refused(code string) error { return &smithy.GenericAPIError{Code: code, Message: "said EC2"} }

func (a *account) CreateLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput, _ ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error) {
	if err := a.call(ctx, "create"); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.made[*in.LaunchTemplateName] != nil {
		return nil, refused("InvalidLaunchTemplateName.AlreadyExistsException")
	}
	return &ec2.CreateLaunchTemplateOutput{LaunchTemplate: a.add(in)}, nil
}

func (a *account) add(in *ec2.CreateLaunchTemplateInput) *types.LaunchTemplate {
	id := fmt.Sprintf("lt-%d", len(a.ids))
	a.made[*in.LaunchTemplateName], a.ids[id] = in, *in.LaunchTemplateName
	return &types.LaunchTemplate{LaunchTemplateId: &id, LaunchTemplateName: in.LaunchTemplateName}
}

func (a *account) DescribeLaunchTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput, _ ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	name := "describe"
	if len(in.LaunchTemplateNames) == 0 {
		name = "list"
	}
	if err := a.call(ctx, name); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	out := &ec2.DescribeLaunchTemplatesOutput{}
	for i := range len(a.ids) {
		id := fmt.Sprintf("lt-%d", i)
		name := a.ids[id]
		if a.made[name] == nil || len(in.LaunchTemplateNames) > 0 && name != in.LaunchTemplateNames[0] || !tagged(a.made[name], in.Filters) || id <= aws.ToString(in.NextToken) {
			continue
		}
		if a.page > 0 && len(out.LaunchTemplates) == a.page {
			out.NextToken = out.LaunchTemplates[a.page-1].LaunchTemplateId
			break
		}
		out.LaunchTemplates = append(out.LaunchTemplates, types.LaunchTemplate{LaunchTemplateId: &id, LaunchTemplateName: &name})
	}
	if len(in.LaunchTemplateNames) > 0 && len(out.LaunchTemplates) == 0 {
		return nil, refused("InvalidLaunchTemplateName.NotFoundException")
	}
	return out, nil
}

func tagged(in *ec2.CreateLaunchTemplateInput, filters []types.Filter) bool {
	return !slices.ContainsFunc(filters, func(f types.Filter) bool {
		return !slices.ContainsFunc(in.TagSpecifications[0].Tags, func(tag types.Tag) bool {
			return *f.Name == "tag:"+*tag.Key && f.Values[0] == *tag.Value
		})
	})
}

func (a *account) DeleteLaunchTemplate(ctx context.Context, in *ec2.DeleteLaunchTemplateInput, _ ...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateOutput, error) {
	if err := a.call(ctx, "delete"); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	name := aws.ToString(in.LaunchTemplateName)
	if in.LaunchTemplateId != nil {
		name = a.ids[*in.LaunchTemplateId]
	}
	if a.made[name] == nil {
		return nil, refused("InvalidLaunchTemplateId.NotFound")
	}
	delete(a.made, name)
	return &ec2.DeleteLaunchTemplateOutput{}, nil
}

// trial runs a test in virtual time on templates of an empty account.
func trial(t *testing.T, test func(*testing.T, *Templates, *account, func(text string) *Want)) {
	known := descriptions(t)
	synctest.Test(t, func(t *testing.T) {
		a := newAccount()
		templates := New(parse(t, "").config(a, &controlPlane{cidr: "10.100.0.0/16"}))
		test(t, templates, a, func(text string) *Want { return parse(t, text).want(t, known) })
	})
}

func ensure(t *testing.T, templates *Templates, want *Want) []Template {
	t.Helper()
	out, err := templates.Ensure(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func maintain(t *testing.T, templates *Templates) {
	t.Helper()
	if err := templates.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func expectCalls(t *testing.T, a *account, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, a.count()); diff != "" {
		t.Errorf("calls of EC2 (-want +got):\n%s", diff)
	}
}

const twoImages = "types: [m5.large, m6g.large]"

// TestLaunchTemplatesOfManyLaunches: a thousand launches at once make each template once.
func TestLaunchTemplatesOfManyLaunches(t *testing.T) {
	trial(t, func(t *testing.T, templates *Templates, a *account, want func(string) *Want) {
		launch := want(twoImages)
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { ensure(t, templates, launch) })
		}
		wg.Wait()
		expectCalls(t, a, map[string]int{"describe": 2, "create": 2})
		if got := ensure(t, templates, launch); len(got) != 2 || got[0].ImageID != "ami-x86" || got[1].ImageID != "ami-arm" || len(a.names()) != 2 {
			t.Errorf("templates %+v of %v", got, a.names())
		}
		expectCalls(t, a, map[string]int{})
	})
}

// TestManyFail: when EC2 rejects a template, all callers that wait get the
// error, and EC2 is asked once; the next launch tries again. Who gives up
// waiting does not fail the others.
func TestManyFail(t *testing.T) {
	trial(t, func(t *testing.T, templates *Templates, a *account, want func(string) *Want) {
		a.fail["create"] = &smithy.GenericAPIError{Code: "InvalidUserData.Malformed", Message: "User data is limited to 16384 bytes"}
		launch := want("")
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := templates.Ensure(t.Context(), launch); !client.UserDataTooLarge(err) {
					t.Errorf("error: %v", err)
				}
			})
		}
		wg.Wait()
		expectCalls(t, a, map[string]int{"describe": 1, "create": 1})

		impatient, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		wg.Go(func() {
			if _, err := templates.Ensure(impatient, launch); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error: %v", err)
			}
		})
		synctest.Wait()
		for range 100 {
			wg.Go(func() { ensure(t, templates, launch) })
		}
		wg.Wait()
		expectCalls(t, a, map[string]int{"describe": 2, "create": 1})
	})
}

// TestSizeOfUserData: only EC2 reports user data that is too large, but the log
// warns before that (spec 65/118).
func TestSizeOfUserData(t *testing.T) {
	trial(t, func(t *testing.T, templates *Templates, a *account, want func(string) *Want) {
		var lines []string
		ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
		for size, logged := range map[int]bool{14744: false, 15000: true} {
			lines = nil
			launch := want("")
			launch.Class.Spec.UserData = aws.String(strings.Repeat("x", size))
			if _, err := templates.Ensure(ctx, launch); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(strings.Join(lines, "\n"), fmt.Sprintf(`"bytes"=%d`, size)); got != logged {
				t.Errorf("%d bytes: logged %v", size, lines)
			}
			if got := testutil.ToFloat64(templates.config.Metrics.bytes.WithLabelValues("default")); got != float64(size) {
				t.Errorf("the metric says %v", got)
			}
		}
		for message, reason := range map[string]string{
			"User data is limited to 16384 bytes":   "UserDataSizeLimitExceeded",
			"Invalid BASE64 encoding of user data.": "LaunchFailed",
		} {
			a.fail["create"] = &smithy.GenericAPIError{Code: "InvalidUserData.Malformed", Message: message}
			launch := want("")
			launch.Class.Name = reason
			_, err := templates.Ensure(ctx, launch)
			if got, _ := client.Reason(fmt.Sprint(err)); got != reason || client.UserDataTooLarge(err) != (reason != "LaunchFailed") {
				t.Errorf("%s: %v", got, err)
			}
		}
		launch := want(`class: {spec: {amiFamily: Bottlerocket, userData: "[settings.kubernetes]\nnews = 1"}}`)
		if _, err := templates.Ensure(ctx, launch); err != nil || !strings.Contains(strings.Join(lines, "\n"), "settings.kubernetes.news") {
			t.Errorf("spec 65/113: logged %v, %v", lines, err)
		}
	})
}

// TestCIDR: without the addresses of Services nodes of AL2023 can't join, so
// nothing is made (spec 65/109).
func TestCIDR(t *testing.T) {
	known := descriptions(t)
	synctest.Test(t, func(t *testing.T) {
		a, plane := newAccount(), &controlPlane{}
		s := parse(t, "class: {spec: {amiFamily: AL2023}}")
		templates := New(s.config(a, plane))
		if _, err := templates.Ensure(t.Context(), s.want(t, known)); !cloud.IsNodeClassNotReady(err) {
			t.Errorf("error: %v", err)
		}
		expectCalls(t, a, map[string]int{})
		plane.cidr = "10.100.0.0/16"
		ensure(t, templates, s.want(t, known))
		plane.cidr = "" // is not asked again
		s.Class.Name = "other"
		ensure(t, templates, s.want(t, known))
	})
}

// TestExpiry: a template is deleted a minute after it was last wanted, and made
// again when it is wanted then (spec 65/117).
func TestExpiry(t *testing.T) {
	trial(t, func(t *testing.T, templates *Templates, a *account, want func(string) *Want) {
		kept, left := want(""), want("class: {metadata: {name: left}}")
		ensure(t, templates, kept)
		ensure(t, templates, left)
		maintain(t, templates)
		time.Sleep(50 * time.Second)
		ensure(t, templates, kept)
		time.Sleep(20 * time.Second)
		a.count()
		maintain(t, templates)
		expectCalls(t, a, map[string]int{"delete": 1})
		if names := a.names(); len(names) != 1 || names[0] != ensure(t, templates, kept)[0].Name {
			t.Errorf("left are %v", names)
		}
		ensure(t, templates, left)
		expectCalls(t, a, map[string]int{"describe": 1, "create": 1})

		// What has gone by other ways is no error.
		time.Sleep(2 * time.Minute)
		a.made = map[string]*ec2.CreateLaunchTemplateInput{}
		maintain(t, templates)
		expectCalls(t, a, map[string]int{"delete": 2})
		maintain(t, templates)
		expectCalls(t, a, map[string]int{})
	})
}

// TestExpiryUnderLaunch: a launch that comes while its template is deleted waits,
// and then makes another; one that comes before the deletion keeps it
// (spec 65/117).
func TestExpiryUnderLaunch(t *testing.T) {
	trial(t, func(t *testing.T, templates *Templates, a *account, want func(string) *Want) {
		launch := want("")
		ensure(t, templates, launch)
		maintain(t, templates)
		time.Sleep(2 * time.Minute)
		a.count()
		var wg sync.WaitGroup
		wg.Go(func() { maintain(t, templates) })
		synctest.Wait() // the deletion is under way
		wg.Go(func() { ensure(t, templates, launch) })
		wg.Wait()
		expectCalls(t, a, map[string]int{"delete": 1, "describe": 1, "create": 1})
		if len(a.names()) != 1 {
			t.Errorf("templates %v", a.names())
		}

		time.Sleep(2 * time.Minute)
		ensure(t, templates, launch) // found again in time
		maintain(t, templates)
		expectCalls(t, a, map[string]int{})
	})
}

// TestFailedDeletion: what could not be deleted is tried again; a launch that
// comes before looks whether it is there.
func TestFailedDeletion(t *testing.T) {
	trial(t, func(t *testing.T, templates *Templates, a *account, want func(string) *Want) {
		launch := want("")
		ensure(t, templates, launch)
		maintain(t, templates)
		time.Sleep(2 * time.Minute)
		for range 2 {
			a.fail["delete"] = refused("RequestLimitExceeded")
			if err := templates.Maintain(t.Context()); !client.RateLimited(err) {
				t.Fatalf("error: %v", err)
			}
		}
		a.count()
		ensure(t, templates, launch)
		expectCalls(t, a, map[string]int{"describe": 1})
		time.Sleep(2 * time.Minute)
		maintain(t, templates)
		expectCalls(t, a, map[string]int{"delete": 1})
	})
}

// TestForget: what EC2 does not know any more is made again, and nothing is
// deleted (spec 65/86, spec 65/117).
func TestForget(t *testing.T) {
	trial(t, func(t *testing.T, templates *Templates, a *account, want func(string) *Want) {
		launch := want("")
		maintain(t, templates)
		name := ensure(t, templates, launch)[0].Name
		delete(a.made, name)
		templates.Forget([]string{name})
		a.count()
		ensure(t, templates, launch)
		expectCalls(t, a, map[string]int{"describe": 1, "create": 1})
		templates.Forget([]string{name})
		time.Sleep(2 * time.Minute)
		maintain(t, templates)
		if len(a.names()) != 1 {
			t.Error("deleted what was to be forgotten")
		}
	})
}

// TestHydration: a new leader deletes what the last one left, unless it is
// wanted again; other clusters' templates are not touched.
func TestHydration(t *testing.T) {
	trial(t, func(t *testing.T, before *Templates, a *account, want func(string) *Want) {
		used := want("class: {metadata: {name: used}}")
		for _, text := range []string{"", "class: {metadata: {name: b}}", "class: {metadata: {name: used}}"} {
			ensure(t, before, want(text))
		}
		elsewhere := before.config
		elsewhere.Cluster.Name = "other"
		other := ensure(t, New(elsewhere), want(""))[0].Name
		a.page = 2
		a.count()

		templates := New(before.config)
		a.fail["list"] = refused("InternalError")
		if err := templates.Maintain(t.Context()); err == nil {
			t.Error("no error")
		}
		maintain(t, templates)
		time.Sleep(30 * time.Second)
		again := ensure(t, templates, used)[0].Name
		time.Sleep(40 * time.Second)
		maintain(t, templates)
		expectCalls(t, a, map[string]int{"list": 3, "delete": 2})
		left := []string{again, other}
		slices.Sort(left)
		if diff := cmp.Diff(left, a.names()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestDeleteAll: of a class that is no more, nothing stays; what cannot be
// deleted is reported (spec 65/136).
func TestDeleteAll(t *testing.T) {
	trial(t, func(t *testing.T, templates *Templates, a *account, want func(string) *Want) {
		ensure(t, templates, want(twoImages))
		other := ensure(t, templates, want("class: {metadata: {name: other}}"))[0].Name
		a.fail["delete"] = refused("UnauthorizedOperation")
		if err := templates.DeleteAll(t.Context(), "default"); !client.Unauthorized(err) {
			t.Errorf("error: %v", err)
		}
		if err := templates.DeleteAll(t.Context(), "default"); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{other}, a.names()); diff != "" {
			t.Error(diff)
		}
		if n := testutil.CollectAndCount(templates.config.Metrics.bytes); n != 1 {
			t.Errorf("%d classes have a metric", n)
		}
		a.count()
		ensure(t, templates, want("")) // another class of that name
		expectCalls(t, a, map[string]int{"describe": 1, "create": 1})
	})
}

// TestRaces: what another controller makes between our look and our creation is
// used; two of one name are an error.
func TestRaces(t *testing.T) {
	trial(t, func(t *testing.T, templates *Templates, a *account, want func(string) *Want) {
		launch := want("")
		drafts, err := templates.drafts(t.Context(), launch)
		if err != nil {
			t.Fatal(err)
		}
		a.mu.Lock()
		a.add(drafts[0].input)
		a.mu.Unlock()
		a.fail["describe"] = refused("InvalidLaunchTemplateName.NotFoundException")
		ensure(t, templates, launch)
		expectCalls(t, a, map[string]int{"describe": 2, "create": 1})

		templates.Forget([]string{drafts[0].Name})
		a.mu.Lock()
		a.add(drafts[0].input)
		a.mu.Unlock()
		if _, err := templates.Ensure(t.Context(), launch); err == nil || !strings.Contains(err.Error(), "2 launch templates") {
			t.Errorf("error: %v", err)
		}
	})
}
