// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/mitchellh/hashstructure/v2"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/client"
)

// clusterPath is where all profiles of the cluster lie.
func (p *Profiles) clusterPath() string {
	return fmt.Sprintf("/karpenter/%s/%s/", p.Region, p.ClusterName)
}

func (p *Profiles) path(class *awsv1.EC2NodeClass) string {
	return p.clusterPath() + string(class.UID) + "/"
}

// name is that of the profile of the class for the role.
func (p *Profiles) name(class *awsv1.EC2NodeClass, role string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q %q", p.Region, class.Name, class.UID, role)
	return fmt.Sprintf("%s_%d", p.ClusterName, h.Sum64())
}

// legacyName returns the name of the profile that the class had in earlier
// releases of Karpenter, or "" if it cannot have had one.
func (p *Profiles) legacyName(class *awsv1.EC2NodeClass) (string, error) {
	hash, err := hashstructure.Hash(p.Region+class.Name, hashstructure.FormatV2, nil)
	if err != nil {
		return "", fmt.Errorf("hash name of node class %s: %w", class.Name, err)
	}
	name := fmt.Sprintf("%s_%d", p.ClusterName, hash)
	if ok, err := regexp.MatchString(`^[\w+=,.@-]{1,128}$`, name); err != nil || !ok {
		return "", err
	}
	return name, nil
}

func (p *Profiles) protect(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.protected[name] = p.Clock.Now().Add(protection)
}

func (p *Profiles) isProtected(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Clock.Now()
	maps.DeleteFunc(p.protected, func(_ string, until time.Time) bool { return !until.After(now) })
	_, ok := p.protected[name]
	return ok
}

// list returns only the profiles under the path.
func (p *Profiles) list(ctx context.Context, path string) ([]types.InstanceProfile, error) {
	var out []types.InstanceProfile
	for pages := iam.NewListInstanceProfilesPaginator(p.IAM, &iam.ListInstanceProfilesInput{PathPrefix: &path}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, p.refusal(fmt.Errorf("list instance profiles under %s: %w", path, err))
		}
		for _, profile := range page.InstanceProfiles {
			if strings.HasPrefix(aws.ToString(profile.Path), path) {
				out = append(out, profile)
			}
		}
	}
	return out, p.refusal(nil)
}

// refusal remembers whether profiles can be listed.
func (p *Profiles) refusal(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.refused = ""
	case client.Refused(err):
		p.refused = cmp.Or(client.Code(err), "not implemented")
	}
	return err
}

// Without returns which permission of Profiles is missing, or "" if none is
// known.
func (p *Profiles) Without() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == "" {
		return ""
	}
	return fmt.Sprintf("AWS denies iam:ListInstanceProfiles (%s): allow it, or unused instance profiles are not deleted", p.refused)
}

// Delete deletes all profiles that were created for the class. If the account
// does not permit listing them, it deletes those whose names are known.
func (p *Profiles) Delete(ctx context.Context, class *awsv1.EC2NodeClass) error {
	names, err := p.of(ctx, class)
	if err != nil {
		return err
	}
	legacy, err := p.legacyName(class)
	if err != nil {
		return err
	}
	if legacy != "" {
		names = append(names, legacy)
	}
	slices.Sort(names)
	var errs []error
	for _, name := range slices.Compact(names) {
		errs = append(errs, p.delete(ctx, name))
	}
	return errors.Join(errs...)
}

// of returns the names of the profiles that were made for the class.
func (p *Profiles) of(ctx context.Context, class *awsv1.EC2NodeClass) ([]string, error) {
	path := p.path(class)
	listed, err := p.list(ctx, path)
	if client.Refused(err) {
		return p.guess(ctx, class, path)
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, profile := range listed {
		names = append(names, aws.ToString(profile.InstanceProfileName))
	}
	return names, nil
}

// guess returns which of the profiles that the class may have used last were
// made for it.
func (p *Profiles) guess(ctx context.Context, class *awsv1.EC2NodeClass, path string) ([]string, error) {
	candidates := []string{class.Status.InstanceProfile}
	if class.Spec.Role != "" {
		candidates = append(candidates, p.name(class, baseName(class.Spec.Role)))
	}
	var names []string
	for _, name := range candidates {
		if name == "" {
			continue
		}
		profile, err := p.read(ctx, name)
		if err != nil {
			return nil, err
		}
		if profile != nil && aws.ToString(profile.Path) == path {
			names = append(names, name)
		}
	}
	return names, nil
}

// Collect deletes the cluster's profiles that are not in use, by name, and were
// not within the hour. It returns the names of those that are gone.
func (p *Profiles) Collect(ctx context.Context, used map[string]bool) (gone []string, err error) {
	listed, err := p.list(ctx, p.clusterPath())
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, profile := range listed {
		name := aws.ToString(profile.InstanceProfileName)
		young := profile.CreateDate != nil && p.Clock.Since(*profile.CreateDate) < protection
		if used[name] || young || p.isProtected(name) {
			continue
		}
		if err := p.delete(ctx, name); err != nil {
			errs = append(errs, err)
			continue
		}
		gone = append(gone, name)
	}
	return gone, errors.Join(errs...)
}
