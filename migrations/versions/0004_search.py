"""search"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql


revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('search_entries',
    sa.Column('session_id', sa.UUID(), nullable=False),
    sa.Column('seq', sa.BigInteger(), nullable=False),
    sa.Column('words', postgresql.TSVECTOR(), nullable=False),
    sa.ForeignKeyConstraint(['session_id'], ['sessions.id'], name=op.f('fk_search_entries_session_id')),
    sa.PrimaryKeyConstraint('session_id', 'seq', name=op.f('pk_search_entries'))
    )
    op.create_index('ix_search_entries_words', 'search_entries', ['words'], unique=False, postgresql_using='gin')
    # Every row that is there gets the default without being rewritten: upkeep indexes what it says.
    op.add_column('sessions', sa.Column('searched_from', sa.BigInteger(), server_default=sa.text('9223372036854775807'), nullable=False))
    op.create_index('ix_sessions_unsearched', 'sessions', ['principal_id'], unique=False, postgresql_where=sa.text('searched_from > 1'))


def downgrade() -> None:
    op.drop_index('ix_sessions_unsearched', table_name='sessions', postgresql_where=sa.text('searched_from > 1'))
    op.drop_column('sessions', 'searched_from')
    op.drop_index('ix_search_entries_words', table_name='search_entries', postgresql_using='gin')
    op.drop_table('search_entries')
