# SPDX-License-Identifier: MIT
# With arguments, puts COUNT tasks of Sidekiq at RATE a second. Sidekiq's worker loads the class
# from this file.
#
# Usage: REDIS_URL=redis://127.0.0.1:PORT ruby peer_sidekiq.rb PORT RATE COUNT MIN_MS SPAN_MS
require 'sidekiq'

class Task
  include Sidekiq::Worker
  sidekiq_options retry: false

  def perform(due)
    late = ((Time.now.to_f - due) * 1e6).round
    Sidekiq.redis { |redis| redis.rpush('late', late.to_s) }
  end
end

if $PROGRAM_NAME == __FILE__
  _, rate, count, min_ms, span_ms = ARGV.map(&:to_i)
  count.times do
    due = Time.now.to_f + (min_ms + rand(span_ms)) / 1000.0
    Task.perform_at(due, due)
    sleep 1.0 / rate
  end
end
